"""More models of emberharmony: a BERT, a GPT-2 with three projections, and a ConvNeXt."""

from emberharmony import Parameter, nn, ops

LAYERS, WIDTH, HEADS, WORDS = 3, 32, 4, 50


class Embeddings(nn.Module):
    def __init__(self):
        self.tokens, self.positions = nn.Embedding(WORDS, WIDTH), nn.Embedding(16, WIDTH)
        self.types, self.norm = nn.Embedding(2, WIDTH), nn.LayerNorm(WIDTH, eps=1e-12)

    def __call__(self, tokens):
        x = ops.add(self.tokens(tokens), self.positions(ops.arange(ops.shape(tokens)[1])))
        return self.norm(ops.add(x, self.types(ops.zeros_like(tokens))))


class EncoderLayer(nn.Module):
    def __init__(self):
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.proj, self.attention_norm = nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH, eps=1e-12)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.output_norm = nn.LayerNorm(WIDTH, eps=1e-12)

    def attend(self, x):
        batch, length = ops.shape(x)[:2]
        q, k, v = (ops.swapaxes(ops.reshape(f(x), (batch, length, HEADS, -1)), 1, 2) for f in (self.q, self.k, self.v))
        scores = ops.divide(ops.matmul(q, ops.swapaxes(k, -1, -2)), (WIDTH // HEADS) ** 0.5)
        y = ops.matmul(ops.softmax(scores, axis=-1), v)
        return self.proj(ops.reshape(ops.swapaxes(y, 1, 2), (batch, length, -1)))

    def __call__(self, x):
        x = self.attention_norm(ops.add(x, self.attend(x)))
        y = ops.gelu(self.up(x), approximate=False)
        return self.output_norm(ops.add(x, self.down(y)))


class Bert(nn.Module):
    def __init__(self):
        self.embeddings = Embeddings()
        self.layers = [EncoderLayer() for _ in range(LAYERS)]
        self.pool, self.classify = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4)

    def __call__(self, tokens):
        x = self.embeddings(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.classify(ops.tanh(self.pool(x[:, 0])))


class CausalAttention(nn.Module):
    def __init__(self):
        self.queries, self.keys, self.values = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.merge = nn.Linear(WIDTH, WIDTH)

    def __call__(self, x):
        batch, length = ops.shape(x)[:2]
        q, k, v = (ops.reshape(f(x), (batch, length, HEADS, -1)) for f in (self.queries, self.keys, self.values))
        y = ops.dot_product_attention(q, k, v, is_causal=True)
        return self.merge(ops.reshape(y, (batch, length, -1)))


class Decoder(nn.Module):
    def __init__(self):
        self.before, self.attention = nn.LayerNorm(WIDTH), CausalAttention()
        self.after, self.widen, self.narrow = (
            nn.LayerNorm(WIDTH),
            nn.Linear(WIDTH, 2 * WIDTH),
            nn.Linear(2 * WIDTH, WIDTH),
        )

    def __call__(self, x):
        x = ops.add(x, self.attention(self.before(x)))
        return ops.add(x, self.narrow(ops.gelu(self.widen(self.after(x)), approximate=True)))


class GPT2(nn.Module):
    def __init__(self):
        self.tokens, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(16, WIDTH)
        self.decoders = [Decoder() for _ in range(LAYERS)]
        self.last = nn.LayerNorm(WIDTH)

    def __call__(self, tokens):
        x = ops.add(self.tokens(tokens), self.places(ops.arange(ops.shape(tokens)[1])))
        for decoder in self.decoders:
            x = decoder(x)
        return ops.matmul(self.last(x), ops.transpose(self.tokens.weight))


class ConvNeXtBlock(nn.Module):
    def __init__(self, size):
        self.depthwise, self.norm = nn.Conv2d(size, size, 3, padding=1, groups=size), nn.LayerNorm(size, eps=1e-6)
        self.wide, self.narrow = nn.Linear(size, 2 * size), nn.Linear(2 * size, size)
        self.layer_scale = Parameter(ops.ones((size,)))

    def __call__(self, x):
        y = self.norm(ops.moveaxis(self.depthwise(x), 1, -1))
        y = self.narrow(ops.gelu(self.wide(y), approximate=False))
        return ops.add(x, ops.moveaxis(ops.multiply(y, self.layer_scale), -1, 1))


class ConvNeXt(nn.Module):
    def __init__(self):
        self.patchify, self.patch_norm = nn.Conv2d(3, 8, 2, stride=2), nn.LayerNorm(8, eps=1e-6)
        self.blocks_8 = [ConvNeXtBlock(8), ConvNeXtBlock(8)]
        self.merge_norm, self.merge = nn.LayerNorm(8, eps=1e-6), nn.Conv2d(8, 16, 2, stride=2)
        self.blocks_16 = [ConvNeXtBlock(16), ConvNeXtBlock(16)]
        self.norm, self.classify = nn.LayerNorm(16, eps=1e-6), nn.Linear(16, 10)

    def normalized(self, norm, x):
        return ops.moveaxis(norm(ops.moveaxis(x, 1, -1)), -1, 1)

    def __call__(self, images):
        x = self.normalized(self.patch_norm, self.patchify(images))
        for block in self.blocks_8:
            x = block(x)
        x = self.merge(self.normalized(self.merge_norm, x))
        for block in self.blocks_16:
            x = block(x)
        return self.classify(self.norm(ops.mean(x, axis=(2, 3))))


MODELS = {"bert": Bert, "gpt2": GPT2, "convnext": ConvNeXt}
