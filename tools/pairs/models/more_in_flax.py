"""More models of Flax NNX, as public code has them: a mixer."""

import jax.numpy as jnp
from flax import nnx

LAYERS, WIDTH = 3, 32
streams = nnx.Rngs(0)


class MlpBlock(nnx.Module):
    def __init__(self, size, hidden):
        self.dense_0, self.dense_1 = nnx.Linear(size, hidden, rngs=streams), nnx.Linear(hidden, size, rngs=streams)

    def __call__(self, x):
        return self.dense_1(nnx.gelu(self.dense_0(x), approximate=False))


class MixerBlock(nnx.Module):
    def __init__(self):
        self.layer_norm_0 = nnx.LayerNorm(WIDTH, epsilon=1e-6, rngs=streams)
        self.token_mixing = MlpBlock(16, 24)
        self.layer_norm_1 = nnx.LayerNorm(WIDTH, epsilon=1e-6, rngs=streams)
        self.channel_mixing = MlpBlock(WIDTH, 2 * WIDTH)

    def __call__(self, x):
        y = jnp.swapaxes(self.layer_norm_0(x), 1, 2)
        y = self.token_mixing(y)
        x = x + jnp.swapaxes(y, 1, 2)
        y = self.layer_norm_1(x)
        return x + self.channel_mixing(y)


class MlpMixer(nnx.Module):
    def __init__(self):
        self.stem = nnx.Conv(3, WIDTH, (4, 4), strides=(4, 4), padding="VALID", rngs=streams)
        self.blocks = nnx.List([MixerBlock() for _ in range(LAYERS)])
        self.pre_head_layer_norm = nnx.LayerNorm(WIDTH, epsilon=1e-6, rngs=streams)
        self.head = nnx.Linear(WIDTH, 10, rngs=streams)

    def __call__(self, images):
        x = self.stem(images)
        x = x.reshape(x.shape[0], -1, WIDTH)
        for block in self.blocks:
            x = block(x)
        return self.head(jnp.mean(self.pre_head_layer_norm(x), axis=1))


MODELS = {"mixer": MlpMixer}
