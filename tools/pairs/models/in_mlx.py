"""Models of MLX, as public code has them: names and structure of mlx-lm and mlx-examples."""

import mlx.core as mx
import mlx.nn as nn

LAYERS, WIDTH, HEADS, GROUPS, WORDS = 3, 32, 4, 2, 50


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.n_heads, self.n_kv_heads = HEADS, GROUPS
        head_dim = WIDTH // HEADS
        self.scale = head_dim**-0.5
        self.q_proj = nn.Linear(WIDTH, HEADS * head_dim, bias=False)
        self.k_proj = nn.Linear(WIDTH, GROUPS * head_dim, bias=False)
        self.v_proj = nn.Linear(WIDTH, GROUPS * head_dim, bias=False)
        self.o_proj = nn.Linear(HEADS * head_dim, WIDTH, bias=False)
        self.rope = nn.RoPE(head_dim, traditional=False, base=10000.0)

    def __call__(self, x, mask=None):
        batch, length, _ = x.shape
        queries, keys, values = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        queries = self.rope(queries.reshape(batch, length, self.n_heads, -1).transpose(0, 2, 1, 3))
        keys = self.rope(keys.reshape(batch, length, self.n_kv_heads, -1).transpose(0, 2, 1, 3))
        values = values.reshape(batch, length, self.n_kv_heads, -1).transpose(0, 2, 1, 3)
        output = mx.fast.scaled_dot_product_attention(queries, keys, values, scale=self.scale, mask=mask)
        return self.o_proj(output.transpose(0, 2, 1, 3).reshape(batch, length, -1))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.up_proj = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.down_proj = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def __call__(self, x):
        return self.down_proj(nn.silu(self.gate_proj(x)) * self.up_proj(x))


class TransformerBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn, self.mlp = Attention(), MLP()
        self.input_layernorm, self.post_attention_layernorm = nn.RMSNorm(WIDTH, eps=1e-6), nn.RMSNorm(WIDTH, eps=1e-6)

    def __call__(self, x, mask=None):
        h = x + self.self_attn(self.input_layernorm(x), mask)
        return h + self.mlp(self.post_attention_layernorm(h))


class LlamaModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(WORDS, WIDTH)
        self.layers = [TransformerBlock() for _ in range(LAYERS)]
        self.norm = nn.RMSNorm(WIDTH, eps=1e-6)

    def __call__(self, tokens):
        h = self.embed_tokens(tokens)
        mask = nn.MultiHeadAttention.create_additive_causal_mask(tokens.shape[1])
        for layer in self.layers:
            h = layer(h, mask)
        return self.norm(h)


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = LlamaModel()
        self.lm_head = nn.Linear(WIDTH, WORDS, bias=False)

    def __call__(self, tokens):
        return self.lm_head(self.model(tokens))


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer_norm1 = nn.LayerNorm(WIDTH, eps=1e-6)
        self.self_attn = nn.MultiHeadAttention(WIDTH, HEADS, bias=True)
        self.layer_norm2 = nn.LayerNorm(WIDTH, eps=1e-6)
        self.linear1, self.linear2 = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def __call__(self, x):
        y = self.layer_norm1(x)
        x = x + self.self_attn(y, y, y)
        return x + self.linear2(nn.gelu(self.linear1(self.layer_norm2(x))))


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch_embedding = nn.Conv2d(3, WIDTH, 4, stride=4)
        self.class_embedding = mx.zeros((1, 1, WIDTH))
        self.position_embedding = mx.zeros((1, 17, WIDTH))
        self.layers = [EncoderLayer() for _ in range(LAYERS)]
        self.post_layernorm = nn.LayerNorm(WIDTH, eps=1e-6)
        self.classifier = nn.Linear(WIDTH, 10)

    def __call__(self, images):
        x = mx.flatten(self.patch_embedding(images), 1, 2)
        token = mx.broadcast_to(self.class_embedding, (x.shape[0], 1, WIDTH))
        x = mx.concatenate([token, x], axis=1) + self.position_embedding
        for layer in self.layers:
            x = layer(x)
        return self.classifier(self.post_layernorm(x)[:, 0])


class MultiHeadAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.n_head = HEADS
        self.key = nn.Linear(WIDTH, WIDTH, bias=False)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.query = nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def __call__(self, x, xa=None, mask=None):
        q = self.query(x)
        k, v = self.key(x if xa is None else xa), self.value(x if xa is None else xa)
        return self.out(self.attend(q, k, v, mask))

    def attend(self, q, k, v, mask):
        scale = (WIDTH // self.n_head) ** -0.25
        q = q.reshape(*q.shape[:2], self.n_head, -1).transpose(0, 2, 1, 3) * scale
        k = k.reshape(*k.shape[:2], self.n_head, -1).transpose(0, 2, 3, 1) * scale
        v = v.reshape(*v.shape[:2], self.n_head, -1).transpose(0, 2, 1, 3)
        qk = q @ k
        if mask is not None:
            qk = qk + mask
        w = mx.softmax(qk, axis=-1)
        out = (w @ v).transpose(0, 2, 1, 3)
        return out.reshape(*out.shape[:2], -1)


class EncoderBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = MultiHeadAttention()
        self.attn_ln = nn.LayerNorm(WIDTH)
        self.mlp1, self.mlp2 = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.mlp_ln = nn.LayerNorm(WIDTH)

    def __call__(self, x):
        x = x + self.attn(self.attn_ln(x))
        y = self.mlp1(self.mlp_ln(x))
        return x + self.mlp2(nn.gelu(y))


class DecoderBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = MultiHeadAttention()
        self.attn_ln = nn.LayerNorm(WIDTH)
        self.cross_attn = MultiHeadAttention()
        self.cross_attn_ln = nn.LayerNorm(WIDTH)
        self.mlp1, self.mlp2 = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.mlp_ln = nn.LayerNorm(WIDTH)

    def __call__(self, x, xa, mask):
        x = x + self.attn(self.attn_ln(x), mask=mask)
        x = x + self.cross_attn(self.cross_attn_ln(x), xa)
        y = self.mlp1(self.mlp_ln(x))
        return x + self.mlp2(nn.gelu(y))


class AudioEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(8, WIDTH, kernel_size=3, padding=1)
        self.conv2 = nn.Conv1d(WIDTH, WIDTH, kernel_size=3, stride=2, padding=1)
        self.positional_embedding = nn.Embedding(8, WIDTH)
        self.blocks = [EncoderBlock() for _ in range(2)]
        self.ln_post = nn.LayerNorm(WIDTH)

    def __call__(self, x):
        x = nn.gelu(self.conv1(x))
        x = nn.gelu(self.conv2(x)) + self.positional_embedding.weight
        for block in self.blocks:
            x = block(x)
        return self.ln_post(x)


class TextDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.token_embedding = nn.Embedding(WORDS, WIDTH)
        self.positional_embedding = nn.Embedding(16, WIDTH)
        self.blocks = [DecoderBlock() for _ in range(2)]
        self.ln = nn.LayerNorm(WIDTH)

    def __call__(self, tokens, xa):
        length = tokens.shape[1]
        x = self.token_embedding(tokens) + self.positional_embedding.weight[:length]
        mask = nn.MultiHeadAttention.create_additive_causal_mask(length)
        for block in self.blocks:
            x = block(x, xa, mask)
        return self.token_embedding.as_linear(self.ln(x))


class Whisper(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = AudioEncoder(), TextDecoder()

    def __call__(self, mel, tokens):
        return self.decoder(tokens, self.encoder(mel))


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.rnn1 = nn.LSTM(WIDTH, WIDTH)
        self.ln = nn.LayerNorm(WIDTH)
        self.rnn2 = nn.LSTM(WIDTH, WIDTH)
        self.hidden, self.output = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 7)

    def __call__(self, tokens):
        x, _ = self.rnn1(self.embed(tokens))
        x, _ = self.rnn2(self.ln(x))
        return self.output(mx.tanh(self.hidden(x)))


MODELS = {"llama": Llama, "vit": ViT, "whisper": Whisper, "lstm": Tagger}
