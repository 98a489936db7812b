"""Models of emberharmony."""

from emberharmony import nn, ops

LAYERS, WIDTH, HEADS, GROUPS, WORDS = 3, 32, 4, 2, 50


class ConvBlock(nn.Module):
    def __init__(self, inputs, outputs):
        self.first, self.norm_first = nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(4, outputs)
        self.second, self.norm_second = nn.Conv2d(outputs, outputs, 3, padding=1), nn.GroupNorm(4, outputs)

    def __call__(self, x):
        x = ops.silu(self.norm_first(self.first(x)))
        return ops.silu(self.norm_second(self.second(x)))


class UNet(nn.Module):
    def __init__(self):
        self.encoder1, self.encoder2, self.bottom = ConvBlock(3, 8), ConvBlock(8, 16), ConvBlock(16, 24)
        self.pool = nn.MaxPool2d(2)
        self.upsample1, self.decoder1 = nn.ConvTranspose2d(24, 16, 2, stride=2), ConvBlock(32, 16)
        self.upsample2, self.decoder2 = nn.ConvTranspose2d(16, 8, 2, stride=2), ConvBlock(16, 8)
        self.classify = nn.Conv2d(8, 2, 1)

    def __call__(self, images):
        a = self.encoder1(images)
        b = self.encoder2(self.pool(a))
        x = self.upsample1(self.bottom(self.pool(b)))
        x = self.decoder1(ops.concatenate([b, x], axis=1))
        x = self.decoder2(ops.concatenate([a, self.upsample2(x)], axis=1))
        return self.classify(x)


class Attention(nn.Module):
    def __init__(self):
        self.wq, self.wk = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH // 2, bias=False)
        self.wv, self.wo = nn.Linear(WIDTH, WIDTH // 2, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.rope = nn.RoPE(WIDTH // HEADS, traditional=False, base=10000.0)

    def __call__(self, x):
        batch, length = ops.shape(x)[:2]
        q = ops.swapaxes(ops.reshape(self.wq(x), (batch, length, HEADS, -1)), 1, 2)
        k = ops.swapaxes(ops.reshape(self.wk(x), (batch, length, GROUPS, -1)), 1, 2)
        v = ops.swapaxes(ops.reshape(self.wv(x), (batch, length, GROUPS, -1)), 1, 2)
        q, k = self.rope(q), self.rope(k)
        k, v = ops.repeat(k, HEADS // GROUPS, axis=1), ops.repeat(v, HEADS // GROUPS, axis=1)
        scores = ops.multiply(ops.matmul(q, ops.swapaxes(k, -1, -2)), (WIDTH // HEADS) ** -0.5)
        keep = ops.tril(ops.ones((length, length), dtype="bool"))
        scores = ops.softmax(ops.where(keep, scores, -1e30), axis=-1)
        y = ops.swapaxes(ops.matmul(scores, v), 1, 2)
        return self.wo(ops.reshape(y, (batch, length, -1)))


class FeedForward(nn.Module):
    def __init__(self):
        self.w1, self.w3 = nn.Linear(WIDTH, 2 * WIDTH, bias=False), nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.w2 = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def __call__(self, x):
        return self.w2(ops.multiply(ops.silu(self.w1(x)), self.w3(x)))


class Layer(nn.Module):
    def __init__(self):
        self.attention, self.feed_forward = Attention(), FeedForward()
        self.attention_norm, self.ffn_norm = nn.RMSNorm(WIDTH, eps=1e-6), nn.RMSNorm(WIDTH, eps=1e-6)

    def __call__(self, x):
        x = ops.add(x, self.attention(self.attention_norm(x)))
        return ops.add(x, self.feed_forward(self.ffn_norm(x)))


class Llama(nn.Module):
    def __init__(self):
        self.tok_embeddings = nn.Embedding(WORDS, WIDTH)
        self.layers = [Layer() for _ in range(LAYERS)]
        self.norm = nn.RMSNorm(WIDTH, eps=1e-6)
        self.output = nn.Linear(WIDTH, WORDS, bias=False)

    def __call__(self, tokens):
        x = self.tok_embeddings(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


MODELS = {"unet": UNet, "llama": Llama}
