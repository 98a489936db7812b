"""More models of Keras, as public code has them: a U-Net, a ConvNeXt and a mixer."""

import keras
from keras import layers, ops

LAYERS, WIDTH = 3, 32


class ConvBlock(layers.Layer):
    def __init__(self, filters, **kwargs):
        super().__init__(**kwargs)
        self.conv_1 = layers.Conv2D(filters, 3, padding="same")
        self.norm_1 = layers.GroupNormalization(4, epsilon=1e-5)
        self.conv_2 = layers.Conv2D(filters, 3, padding="same")
        self.norm_2 = layers.GroupNormalization(4, epsilon=1e-5)

    def call(self, inputs):
        x = ops.silu(self.norm_1(self.conv_1(inputs)))
        return ops.silu(self.norm_2(self.conv_2(x)))


class UNet(keras.Model):
    def __init__(self):
        super().__init__()
        self.enc_1, self.enc_2, self.bridge = ConvBlock(8), ConvBlock(16), ConvBlock(24)
        self.up_1, self.dec_1 = layers.Conv2DTranspose(16, 2, strides=2), ConvBlock(16)
        self.up_2, self.dec_2 = layers.Conv2DTranspose(8, 2, strides=2), ConvBlock(8)
        self.pool, self.concat = layers.MaxPooling2D(2), layers.Concatenate()
        self.head = layers.Conv2D(2, 1)

    def call(self, images):
        skip_1 = self.enc_1(images)
        skip_2 = self.enc_2(self.pool(skip_1))
        x = self.bridge(self.pool(skip_2))
        x = self.dec_1(self.concat([skip_2, self.up_1(x)]))
        x = self.dec_2(self.concat([skip_1, self.up_2(x)]))
        return self.head(x)


class ConvNeXtBlock(layers.Layer):
    def __init__(self, dim, **kwargs):
        super().__init__(**kwargs)
        self.depthwise = layers.Conv2D(dim, 3, padding="same", groups=dim)
        self.layernorm = layers.LayerNormalization(epsilon=1e-6)
        self.pointwise_1 = layers.Dense(2 * dim)
        self.gelu = layers.Activation("gelu")
        self.pointwise_2 = layers.Dense(dim)
        self.dim = dim

    def build(self, input_shape):
        self.gamma = self.add_weight(shape=(self.dim,), initializer="ones", name="gamma")

    def call(self, inputs):
        x = self.pointwise_1(self.layernorm(self.depthwise(inputs)))
        return inputs + self.pointwise_2(self.gelu(x)) * self.gamma


class ConvNeXt(keras.Model):
    def __init__(self):
        super().__init__()
        self.stem_conv, self.stem_norm = layers.Conv2D(8, 2, strides=2), layers.LayerNormalization(epsilon=1e-6)
        self.stage_0 = [ConvNeXtBlock(8), ConvNeXtBlock(8)]
        self.down_norm, self.down_conv = layers.LayerNormalization(epsilon=1e-6), layers.Conv2D(16, 2, strides=2)
        self.stage_1 = [ConvNeXtBlock(16), ConvNeXtBlock(16)]
        self.pool = layers.GlobalAveragePooling2D()
        self.head_norm, self.head_dense = layers.LayerNormalization(epsilon=1e-6), layers.Dense(10)

    def call(self, images):
        x = self.stem_norm(self.stem_conv(images))
        for block in self.stage_0:
            x = block(x)
        x = self.down_conv(self.down_norm(x))
        for block in self.stage_1:
            x = block(x)
        return self.head_dense(self.head_norm(self.pool(x)))


class MLP(layers.Layer):
    def __init__(self, hidden, size, **kwargs):
        super().__init__(**kwargs)
        self.dense_in, self.dense_out = layers.Dense(hidden), layers.Dense(size)

    def call(self, inputs):
        return self.dense_out(keras.activations.gelu(self.dense_in(inputs), approximate=False))


class MixerLayer(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.norm_a, self.token_mlp = layers.LayerNormalization(epsilon=1e-6), MLP(24, 16)
        self.norm_b, self.channel_mlp = layers.LayerNormalization(epsilon=1e-6), MLP(2 * WIDTH, WIDTH)

    def call(self, inputs):
        x = ops.transpose(self.norm_a(inputs), (0, 2, 1))
        x = ops.transpose(self.token_mlp(x), (0, 2, 1)) + inputs
        return x + self.channel_mlp(self.norm_b(x))


class Mixer(keras.Model):
    def __init__(self):
        super().__init__()
        self.patches = layers.Conv2D(WIDTH, 4, strides=4)
        self.flatten = layers.Reshape((16, WIDTH))
        self.mixers = [MixerLayer() for _ in range(LAYERS)]
        self.norm, self.pool, self.top = (
            layers.LayerNormalization(epsilon=1e-6),
            layers.GlobalAveragePooling1D(),
            layers.Dense(10),
        )

    def call(self, images):
        x = self.flatten(self.patches(images))
        for mixer in self.mixers:
            x = mixer(x)
        return self.top(self.pool(self.norm(x)))


MODELS = {"unet": UNet, "convnext": ConvNeXt, "mixer": Mixer}
