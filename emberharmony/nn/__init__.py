"""Layers, losses and initial values with the names and formulas of `torch.nn`; they run on every backend.

The names are loaded on first use, so that a program pays for the families of layers that it uses. `__init__.pyi`, which
`utils/generate.py` writes from the table, has them for type checkers.
"""

from emberharmony import Buffer as Buffer
from emberharmony import Parameter as Parameter
from emberharmony.core.names.lazy import lazy_getattr_and_dir

NAMES: dict[str, str] = {
    "cache": "KVCache",
    "containers": "Lambda ModuleDict ModuleList ParameterDict ParameterList Remat Repeat Residual Sequential",
    "data_parallel": "DataParallel",
    "functional": "functional_call merge split value_and_grad",
    "generation": "generate stream_generate",
    "layers.activations": (
        "CELU ELU GEGLU GELU GLU LeakyReLU LogSigmoid LogSoftmax Mish PReLU RReLU ReLU ReLU2 ReLU6 SELU SiLU "
        "Sigmoid Softmax Softmax2d Softmin Softplus Softsign SwiGLU Tanh Tanhshrink"
    ),
    "layers.attention": "MultiHeadAttention MultiheadAttention",
    "layers.convolution": (
        "Conv1d Conv2d Conv3d DepthwiseConv1d DepthwiseConv2d DepthwiseConv3d SeparableConv1d SeparableConv2d "
        "SeparableConv3d"
    ),
    "layers.convolutional_recurrent": "ConvLSTM2d",
    "layers.dropout": (
        "AlphaDropout DropPath Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout GaussianDropout GaussianNoise"
    ),
    "layers.embedding": "Embedding EmbeddingBag",
    "layers.linear": "Bilinear Identity Linear",
    "layers.lora": "LoRALinear add_lora",
    "layers.normalization.running": (
        "BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d InstanceNorm2d InstanceNorm3d"
    ),
    "layers.normalization.without_state": "GroupNorm LayerNorm LocalResponseNorm RMSNorm",
    "layers.padding": (
        "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d "
        "ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d "
        "ZeroPad3d"
    ),
    "layers.pooling.adaptive": (
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d "
        "AdaptiveMaxPool3d GlobalAvgPool GlobalMaxPool"
    ),
    "layers.pooling.windows": (
        "AvgPool1d AvgPool2d AvgPool3d LPPool1d LPPool2d LPPool3d MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d "
        "MaxUnpool2d MaxUnpool3d"
    ),
    "layers.positional": "ALiBi LearnedPositional RoPE SinusoidalPositionalEncoding",
    "layers.quantized": ("QuantizationError QuantizedEmbedding QuantizedLinear dequantize quantization_error quantize"),
    "layers.recurrent": "Bidirectional GRU LSTM RNN",
    "layers.recurrent_cells": "GRUCell LSTMCell RNNCell",
    "layers.shaping": "ChannelShuffle Flatten Fold Permute PixelShuffle PixelUnshuffle Reshape Unflatten Unfold",
    "layers.thresholds": "Hardshrink Hardsigmoid Hardswish Hardtanh Heaviside Softshrink Threshold",
    "layers.transformer": (
        "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer"
    ),
    "layers.transposed": "ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "layers.upsampling": "Upsample UpsamplingBilinear2d UpsamplingNearest2d",
    "lazy": "build",
    "losses.modules": (
        "BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss DiceLoss FocalLoss GaussianNLLLoss "
        "HingeEmbeddingLoss HingeLoss HuberLoss KLDivLoss L1Loss LogCoshLoss MSELoss MarginRankingLoss "
        "MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss PoissonNLLLoss SmoothL1Loss "
        "SoftMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss"
    ),
    "module": "Module",
    "rngs": "Rngs",
    "state": "Loaded",
    "training.fitting": "NonFiniteLossWarning fit",
    "training.history": "History",
    "training.progress": "Step",
}
"""A dict from module names to the public names that the module defines, separated by spaces."""

MODULES = ("data", "init", "losses", "metrics", "parametrize")
"""The modules that are public themselves."""

_HOMES = {name: f"{__name__}.{module}" for module, names in NAMES.items() for name in names.split()}
_HOMES |= {module: f"{__name__}.{module}" for module in MODULES}

__all__ = ["Buffer", "Parameter", *_HOMES]
__getattr__, __dir__ = lazy_getattr_and_dir(__name__, _HOMES)
