"""More models of MLX, as public code has them."""

import mlx.core as mx
import mlx.nn as nn

LAYERS, WIDTH, HEADS, WORDS = 3, 32, 4, 50


class SpeechCommands(nn.Module):
    def __init__(self):
        super().__init__()
        self.frontend = nn.Conv1d(8, WIDTH, 3, padding=1)
        self.frontend_norm = nn.BatchNorm(WIDTH)
        self.layers = [nn.GRU(WIDTH, WIDTH), nn.GRU(WIDTH, WIDTH)]
        self.norm = nn.LayerNorm(WIDTH)
        self.hidden, self.output = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 6)

    def __call__(self, features):
        x = nn.relu(self.frontend_norm(self.frontend(features)))
        for layer in self.layers:
            x = layer(x)
        x = mx.mean(self.norm(x), axis=1)
        return self.output(nn.elu(self.hidden(x)))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.n_head = HEADS
        self.scale = (WIDTH // HEADS) ** -0.5
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def __call__(self, x, mask=None):
        batch, length, _ = x.shape
        queries, keys, values = mx.split(self.c_attn(x), 3, axis=-1)
        queries = queries.reshape(batch, length, self.n_head, -1).transpose(0, 2, 1, 3)
        keys = keys.reshape(batch, length, self.n_head, -1).transpose(0, 2, 1, 3)
        values = values.reshape(batch, length, self.n_head, -1).transpose(0, 2, 1, 3)
        output = mx.fast.scaled_dot_product_attention(queries, keys, values, scale=self.scale, mask=mask)
        return self.c_proj(output.transpose(0, 2, 1, 3).reshape(batch, length, -1))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc, self.c_proj = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def __call__(self, x):
        return self.c_proj(nn.gelu_approx(self.c_fc(x)))


class TransformerBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(WIDTH, eps=1e-5), Attention()
        self.ln_2, self.mlp = nn.LayerNorm(WIDTH, eps=1e-5), MLP()

    def __call__(self, x, mask=None):
        h = x + self.attn(self.ln_1(x), mask)
        return h + self.mlp(self.ln_2(h))


class GPT2Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(WORDS, WIDTH), nn.Embedding(16, WIDTH)
        self.h = [TransformerBlock() for _ in range(LAYERS)]
        self.ln_f = nn.LayerNorm(WIDTH, eps=1e-5)

    def __call__(self, tokens):
        length = tokens.shape[1]
        hidden = self.wte(tokens) + self.wpe(mx.arange(length))
        mask = "causal"
        for layer in self.h:
            hidden = layer(hidden, mask)
        return self.ln_f(hidden)


class GPT2(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = GPT2Model()

    def __call__(self, tokens):
        return self.model.wte.as_linear(self.model(tokens))


class MlpBlock(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.dense1, self.dense2 = nn.Linear(size, hidden), nn.Linear(hidden, size)

    def __call__(self, x):
        return self.dense2(nn.gelu(self.dense1(x)))


class MixerBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.token_mixing = nn.LayerNorm(WIDTH, eps=1e-6), MlpBlock(16, 24)
        self.ln2, self.channel_mixing = nn.LayerNorm(WIDTH, eps=1e-6), MlpBlock(WIDTH, 2 * WIDTH)

    def __call__(self, x):
        y = self.token_mixing(mx.swapaxes(self.ln1(x), 1, 2))
        x = x + mx.swapaxes(y, 1, 2)
        return x + self.channel_mixing(self.ln2(x))


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch_embed = nn.Conv2d(3, WIDTH, 4, stride=4)
        self.layers = [MixerBlock() for _ in range(LAYERS)]
        self.final_norm, self.classifier = nn.LayerNorm(WIDTH, eps=1e-6), nn.Linear(WIDTH, 10)

    def __call__(self, images):
        x = mx.flatten(self.patch_embed(images), 1, 2)
        for layer in self.layers:
            x = layer(x)
        return self.classifier(mx.mean(self.final_norm(x), axis=1))


MODELS = {"gru": SpeechCommands, "gpt2": GPT2, "mixer": Mixer}
