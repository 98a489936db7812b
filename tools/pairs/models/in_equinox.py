"""A ViT of Equinox, as public code has it: for one image, with `jax.vmap` for a batch."""

import equinox as eqx
import jax
import jax.numpy as jnp

LAYERS, WIDTH, HEADS = 3, 32, 4
key = jax.random.PRNGKey(0)


class AttentionBlock(eqx.Module):
    layer_norm1: eqx.nn.LayerNorm
    attention: eqx.nn.MultiheadAttention
    layer_norm2: eqx.nn.LayerNorm
    linear1: eqx.nn.Linear
    linear2: eqx.nn.Linear

    def __init__(self):
        self.layer_norm1 = eqx.nn.LayerNorm(WIDTH, eps=1e-6)
        biases = {f"use_{role}_bias": True for role in ("query", "key", "value", "output")}
        self.attention = eqx.nn.MultiheadAttention(HEADS, WIDTH, **biases, key=key)
        self.layer_norm2 = eqx.nn.LayerNorm(WIDTH, eps=1e-6)
        self.linear1 = eqx.nn.Linear(WIDTH, 2 * WIDTH, key=key)
        self.linear2 = eqx.nn.Linear(2 * WIDTH, WIDTH, key=key)

    def __call__(self, x):
        y = jax.vmap(self.layer_norm1)(x)
        x = x + self.attention(y, y, y)
        y = jax.vmap(self.layer_norm2)(x)
        y = jax.nn.gelu(jax.vmap(self.linear1)(y), approximate=False)
        return x + jax.vmap(self.linear2)(y)


class ViT(eqx.Module):
    cls_token: jax.Array
    positional_embedding: jax.Array
    patch_embedding: eqx.nn.Conv2d
    blocks: list
    norm: eqx.nn.LayerNorm
    head: eqx.nn.Linear

    def __init__(self):
        self.cls_token, self.positional_embedding = jnp.zeros((1, WIDTH)), jnp.zeros((17, WIDTH))
        self.patch_embedding = eqx.nn.Conv2d(3, WIDTH, 4, stride=4, key=key)
        self.blocks = [AttentionBlock() for _ in range(LAYERS)]
        self.norm, self.head = eqx.nn.LayerNorm(WIDTH, eps=1e-6), eqx.nn.Linear(WIDTH, 10, key=key)

    def __call__(self, image):
        x = self.patch_embedding(image).reshape(WIDTH, -1).T
        x = jnp.concatenate([self.cls_token, x]) + self.positional_embedding
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[0]))


MODELS = {"vit": ViT}
