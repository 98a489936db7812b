"""Models of Keras, as public code has them: a ViT of layers, a Sequential of LSTMs and a functional ResNet."""

import keras
from keras import layers, ops

LAYERS, WIDTH, HEADS, WORDS = 3, 32, 4, 50


class TransformerEncoder(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.norm_attention = layers.LayerNormalization(epsilon=1e-6)
        self.attention = layers.MultiHeadAttention(HEADS, WIDTH // HEADS)
        self.norm_mlp = layers.LayerNormalization(epsilon=1e-6)
        self.dense_1 = layers.Dense(2 * WIDTH, activation=lambda x: keras.activations.gelu(x, approximate=False))
        self.dense_2 = layers.Dense(WIDTH)

    def call(self, inputs):
        x = self.norm_attention(inputs)
        x = self.attention(x, x) + inputs
        y = self.dense_2(self.dense_1(self.norm_mlp(x)))
        return x + y


class PatchEncoder(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.projection = layers.Conv2D(WIDTH, 4, strides=4)

    def build(self, input_shape):
        self.projection.build(input_shape)
        self.class_token = self.add_weight(shape=(1, 1, WIDTH), name="class_token")
        self.positions = self.add_weight(shape=(1, 17, WIDTH), name="positions")

    def call(self, images):
        x = self.projection(images)
        x = ops.reshape(x, (-1, 16, WIDTH))
        token = ops.broadcast_to(self.class_token, (ops.shape(x)[0], 1, WIDTH))
        return ops.concatenate([token, x], axis=1) + self.positions


class ViT(keras.Model):
    def __init__(self):
        super().__init__()
        self.patches = PatchEncoder()
        self.encoders = [TransformerEncoder() for _ in range(LAYERS)]
        self.norm = layers.LayerNormalization(epsilon=1e-6)
        self.classifier = layers.Dense(10)

    def call(self, images):
        x = self.patches(images)
        for encoder in self.encoders:
            x = encoder(x)
        return self.classifier(self.norm(x)[:, 0])


def make_tagger():
    return keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            layers.Embedding(WORDS, WIDTH),
            layers.LSTM(WIDTH, return_sequences=True),
            layers.LayerNormalization(epsilon=1e-5),
            layers.LSTM(WIDTH, return_sequences=True),
            layers.Dense(WIDTH, activation="tanh"),
            layers.Dense(7),
        ]
    )


class ResidualBlock(layers.Layer):
    def __init__(self, filters, stride, shortcut, **kwargs):
        super().__init__(**kwargs)
        self.pad = layers.ZeroPadding2D(1)
        self.conv_a = layers.Conv2D(filters, 3, strides=stride, use_bias=False)
        self.bn_a = layers.BatchNormalization(epsilon=1e-5, momentum=0.9)
        self.conv_b = layers.Conv2D(filters, 3, padding="same", use_bias=False)
        self.bn_b = layers.BatchNormalization(epsilon=1e-5, momentum=0.9)
        self.conv_s = layers.Conv2D(filters, 1, strides=stride, use_bias=False) if shortcut else None
        self.bn_s = layers.BatchNormalization(epsilon=1e-5, momentum=0.9) if shortcut else None

    def call(self, inputs):
        x = ops.relu(self.bn_a(self.conv_a(self.pad(inputs))))
        x = self.bn_b(self.conv_b(x))
        if self.conv_s is not None:
            inputs = self.bn_s(self.conv_s(inputs))
        return ops.relu(x + inputs)


class ResNet(keras.Model):
    def __init__(self):
        super().__init__()
        self.stem = layers.Conv2D(8, 3, padding="same", use_bias=False)
        self.stem_bn = layers.BatchNormalization(epsilon=1e-5, momentum=0.9)
        self.pool = layers.MaxPooling2D(2)
        self.stages = [
            ResidualBlock(8, 1, False),
            ResidualBlock(8, 1, False),
            ResidualBlock(16, 2, True),
            ResidualBlock(16, 1, False),
        ]
        self.top = layers.GlobalAveragePooling2D()
        self.classifier = layers.Dense(10)

    def call(self, images):
        x = self.pool(ops.relu(self.stem_bn(self.stem(images))))
        for stage in self.stages:
            x = stage(x)
        return self.classifier(self.top(x))


MODELS = {"vit": ViT, "lstm": make_tagger, "resnet": ResNet}
