"""Models of Flax NNX, as public code has them."""

import jax
import jax.numpy as jnp
from flax import nnx

LAYERS, WIDTH, HEADS, GROUPS, WORDS = 3, 32, 4, 2, 50
streams = nnx.Rngs(0)


class Block(nnx.Module):
    def __init__(self, inputs, outputs, stride):
        conv = {"padding": 1, "use_bias": False, "rngs": streams}
        self.conv0 = nnx.Conv(inputs, outputs, (3, 3), strides=stride, **conv)
        self.norm0 = nnx.BatchNorm(outputs, momentum=0.9, epsilon=1e-5, rngs=streams)
        self.conv1 = nnx.Conv(outputs, outputs, (3, 3), **conv)
        self.norm1 = nnx.BatchNorm(outputs, momentum=0.9, epsilon=1e-5, rngs=streams)
        self.project = stride != 1 or inputs != outputs
        if self.project:
            self.conv_proj = nnx.Conv(inputs, outputs, (1, 1), strides=stride, padding=0, use_bias=False, rngs=streams)
            self.norm_proj = nnx.BatchNorm(outputs, momentum=0.9, epsilon=1e-5, rngs=streams)

    def __call__(self, x):
        residual = x
        y = nnx.relu(self.norm0(self.conv0(x)))
        y = self.norm1(self.conv1(y))
        if self.project:
            residual = self.norm_proj(self.conv_proj(residual))
        return nnx.relu(residual + y)


class ResNet(nnx.Module):
    def __init__(self):
        self.conv_init = nnx.Conv(3, 8, (3, 3), padding=1, use_bias=False, rngs=streams)
        self.bn_init = nnx.BatchNorm(8, momentum=0.9, epsilon=1e-5, rngs=streams)
        self.blocks = nnx.List([Block(8, 8, 1), Block(8, 8, 1), Block(8, 16, 2), Block(16, 16, 1)])
        self.dense = nnx.Linear(16, 10, rngs=streams)

    def __call__(self, x):
        x = nnx.max_pool(nnx.relu(self.bn_init(self.conv_init(x))), (2, 2), strides=(2, 2))
        for block in self.blocks:
            x = block(x)
        return self.dense(jnp.mean(x, axis=(1, 2)))


class EncoderLayer(nnx.Module):
    def __init__(self):
        self.norm1 = nnx.LayerNorm(WIDTH, epsilon=1e-6, rngs=streams)
        self.attn = nnx.MultiHeadAttention(HEADS, WIDTH, decode=False, rngs=streams)
        self.norm2 = nnx.LayerNorm(WIDTH, epsilon=1e-6, rngs=streams)
        self.wi, self.wo = nnx.Linear(WIDTH, 2 * WIDTH, rngs=streams), nnx.Linear(2 * WIDTH, WIDTH, rngs=streams)

    def __call__(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.wo(nnx.gelu(self.wi(self.norm2(x)), approximate=False))


class ViT(nnx.Module):
    def __init__(self):
        self.patch_embeddings = nnx.Conv(3, WIDTH, (4, 4), strides=(4, 4), padding="VALID", rngs=streams)
        self.cls_token = nnx.Param(jnp.zeros((1, 1, WIDTH)))
        self.position_embeddings = nnx.Param(jnp.zeros((1, 17, WIDTH)))
        self.encoder = nnx.List([EncoderLayer() for _ in range(LAYERS)])
        self.final_norm = nnx.LayerNorm(WIDTH, epsilon=1e-6, rngs=streams)
        self.classifier = nnx.Linear(WIDTH, 10, rngs=streams)

    def __call__(self, images):
        x = self.patch_embeddings(images)
        x = x.reshape(x.shape[0], -1, WIDTH)
        token = jnp.broadcast_to(self.cls_token[...], (x.shape[0], 1, WIDTH))
        x = jnp.concatenate([token, x], axis=1) + self.position_embeddings[...]
        for layer in self.encoder:
            x = layer(x)
        return self.classifier(self.final_norm(x)[:, 0])


def rotate(x, base=10000.0):
    half = x.shape[-1] // 2
    freqs = 1.0 / base ** (jnp.arange(half) / half)
    angles = jnp.arange(x.shape[1])[:, None] * freqs
    cos, sin = jnp.cos(angles)[None, :, None], jnp.sin(angles)[None, :, None]
    x1, x2 = x[..., :half], x[..., half:]
    return jnp.concatenate([x1 * cos - x2 * sin, x2 * cos + x1 * sin], axis=-1)


class LlamaAttention(nnx.Module):
    def __init__(self):
        self.q, self.k, self.v, self.o = (
            nnx.Linear(WIDTH, size, use_bias=False, rngs=streams) for size in (WIDTH, WIDTH // 2, WIDTH // 2, WIDTH)
        )

    def __call__(self, x):
        batch, length, _ = x.shape
        q = rotate(self.q(x).reshape(batch, length, HEADS, -1))
        k = rotate(self.k(x).reshape(batch, length, GROUPS, -1))
        v = self.v(x).reshape(batch, length, GROUPS, -1)
        k, v = jnp.repeat(k, HEADS // GROUPS, axis=2), jnp.repeat(v, HEADS // GROUPS, axis=2)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(q.shape[-1])
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e30)
        y = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)
        return self.o(y.reshape(batch, length, -1))


class LlamaLayer(nnx.Module):
    def __init__(self):
        self.attention = LlamaAttention()
        self.gate, self.up = (nnx.Linear(WIDTH, 2 * WIDTH, use_bias=False, rngs=streams) for _ in range(2))
        self.down = nnx.Linear(2 * WIDTH, WIDTH, use_bias=False, rngs=streams)
        self.pre_attention_norm, self.pre_mlp_norm = (nnx.RMSNorm(WIDTH, epsilon=1e-6, rngs=streams) for _ in range(2))

    def __call__(self, x):
        x = x + self.attention(self.pre_attention_norm(x))
        y = self.pre_mlp_norm(x)
        return x + self.down(jax.nn.silu(self.gate(y)) * self.up(y))


class Llama(nnx.Module):
    def __init__(self):
        self.embedder = nnx.Embed(WORDS, WIDTH, rngs=streams)
        self.layers = nnx.List([LlamaLayer() for _ in range(LAYERS)])
        self.final_norm = nnx.RMSNorm(WIDTH, epsilon=1e-6, rngs=streams)
        self.head = nnx.Linear(WIDTH, WORDS, use_bias=False, rngs=streams)

    def __call__(self, tokens):
        x = self.embedder(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.final_norm(x))


MODELS = {"resnet": ResNet, "vit": ViT, "llama": Llama}
