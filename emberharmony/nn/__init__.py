"""Layers, losses and initial values with the names and formulas of `torch.nn`; they run on every backend."""

from emberharmony import Buffer as Buffer
from emberharmony import Parameter as Parameter
from emberharmony.nn import data as data
from emberharmony.nn import init as init
from emberharmony.nn import losses as losses
from emberharmony.nn import metrics as metrics
from emberharmony.nn.layers import parametrize as parametrize
from emberharmony.nn.layers.activations import CELU as CELU
from emberharmony.nn.layers.activations import ELU as ELU
from emberharmony.nn.layers.activations import GEGLU as GEGLU
from emberharmony.nn.layers.activations import GELU as GELU
from emberharmony.nn.layers.activations import GLU as GLU
from emberharmony.nn.layers.activations import SELU as SELU
from emberharmony.nn.layers.activations import Hardshrink as Hardshrink
from emberharmony.nn.layers.activations import Hardsigmoid as Hardsigmoid
from emberharmony.nn.layers.activations import Hardswish as Hardswish
from emberharmony.nn.layers.activations import Hardtanh as Hardtanh
from emberharmony.nn.layers.activations import Heaviside as Heaviside
from emberharmony.nn.layers.activations import LeakyReLU as LeakyReLU
from emberharmony.nn.layers.activations import LogSigmoid as LogSigmoid
from emberharmony.nn.layers.activations import LogSoftmax as LogSoftmax
from emberharmony.nn.layers.activations import Mish as Mish
from emberharmony.nn.layers.activations import PReLU as PReLU
from emberharmony.nn.layers.activations import ReLU as ReLU
from emberharmony.nn.layers.activations import ReLU2 as ReLU2
from emberharmony.nn.layers.activations import ReLU6 as ReLU6
from emberharmony.nn.layers.activations import RReLU as RReLU
from emberharmony.nn.layers.activations import Sigmoid as Sigmoid
from emberharmony.nn.layers.activations import SiLU as SiLU
from emberharmony.nn.layers.activations import Softmax as Softmax
from emberharmony.nn.layers.activations import Softmax2d as Softmax2d
from emberharmony.nn.layers.activations import Softmin as Softmin
from emberharmony.nn.layers.activations import Softplus as Softplus
from emberharmony.nn.layers.activations import Softshrink as Softshrink
from emberharmony.nn.layers.activations import Softsign as Softsign
from emberharmony.nn.layers.activations import SwiGLU as SwiGLU
from emberharmony.nn.layers.activations import Tanh as Tanh
from emberharmony.nn.layers.activations import Tanhshrink as Tanhshrink
from emberharmony.nn.layers.activations import Threshold as Threshold
from emberharmony.nn.layers.attention import KVCache as KVCache
from emberharmony.nn.layers.attention import MultiHeadAttention as MultiHeadAttention
from emberharmony.nn.layers.attention import MultiheadAttention as MultiheadAttention
from emberharmony.nn.containers import Lambda as Lambda
from emberharmony.nn.containers import ModuleDict as ModuleDict
from emberharmony.nn.containers import ModuleList as ModuleList
from emberharmony.nn.containers import ParameterDict as ParameterDict
from emberharmony.nn.containers import ParameterList as ParameterList
from emberharmony.nn.containers import Remat as Remat
from emberharmony.nn.containers import Repeat as Repeat
from emberharmony.nn.containers import Residual as Residual
from emberharmony.nn.containers import Sequential as Sequential
from emberharmony.nn.layers.convolution import Conv1d as Conv1d
from emberharmony.nn.layers.convolution import Conv2d as Conv2d
from emberharmony.nn.layers.convolution import Conv3d as Conv3d
from emberharmony.nn.layers.convolution import DepthwiseConv1d as DepthwiseConv1d
from emberharmony.nn.layers.convolution import DepthwiseConv2d as DepthwiseConv2d
from emberharmony.nn.layers.convolution import DepthwiseConv3d as DepthwiseConv3d
from emberharmony.nn.layers.convolution import SeparableConv1d as SeparableConv1d
from emberharmony.nn.layers.convolution import SeparableConv2d as SeparableConv2d
from emberharmony.nn.layers.convolution import SeparableConv3d as SeparableConv3d
from emberharmony.nn.layers.convolutional_recurrent import ConvLSTM2d as ConvLSTM2d
from emberharmony.nn.layers.dropout import AlphaDropout as AlphaDropout
from emberharmony.nn.layers.dropout import Dropout as Dropout
from emberharmony.nn.layers.dropout import Dropout1d as Dropout1d
from emberharmony.nn.layers.dropout import Dropout2d as Dropout2d
from emberharmony.nn.layers.dropout import Dropout3d as Dropout3d
from emberharmony.nn.layers.dropout import DropPath as DropPath
from emberharmony.nn.layers.dropout import FeatureAlphaDropout as FeatureAlphaDropout
from emberharmony.nn.layers.dropout import GaussianDropout as GaussianDropout
from emberharmony.nn.layers.dropout import GaussianNoise as GaussianNoise
from emberharmony.nn.layers.embedding import Embedding as Embedding
from emberharmony.nn.layers.embedding import EmbeddingBag as EmbeddingBag
from emberharmony.nn.fitting import History as History
from emberharmony.nn.fitting import NonFiniteLossWarning as NonFiniteLossWarning
from emberharmony.nn.fitting import Step as Step
from emberharmony.nn.fitting import fit as fit
from emberharmony.nn.functional import functional_call as functional_call
from emberharmony.nn.functional import merge as merge
from emberharmony.nn.functional import split as split
from emberharmony.nn.functional import value_and_grad as value_and_grad
from emberharmony.nn.lazy import build as build
from emberharmony.nn.layers.linear import Bilinear as Bilinear
from emberharmony.nn.layers.linear import Identity as Identity
from emberharmony.nn.layers.linear import Linear as Linear
from emberharmony.nn.layers.lora import LoRALinear as LoRALinear
from emberharmony.nn.layers.lora import add_lora as add_lora
from emberharmony.nn.losses.modules import BCELoss as BCELoss
from emberharmony.nn.losses.modules import BCEWithLogitsLoss as BCEWithLogitsLoss
from emberharmony.nn.losses.modules import CosineEmbeddingLoss as CosineEmbeddingLoss
from emberharmony.nn.losses.modules import CrossEntropyLoss as CrossEntropyLoss
from emberharmony.nn.losses.modules import CTCLoss as CTCLoss
from emberharmony.nn.losses.modules import DiceLoss as DiceLoss
from emberharmony.nn.losses.modules import FocalLoss as FocalLoss
from emberharmony.nn.losses.modules import GaussianNLLLoss as GaussianNLLLoss
from emberharmony.nn.losses.modules import HingeEmbeddingLoss as HingeEmbeddingLoss
from emberharmony.nn.losses.modules import HingeLoss as HingeLoss
from emberharmony.nn.losses.modules import HuberLoss as HuberLoss
from emberharmony.nn.losses.modules import KLDivLoss as KLDivLoss
from emberharmony.nn.losses.modules import L1Loss as L1Loss
from emberharmony.nn.losses.modules import LogCoshLoss as LogCoshLoss
from emberharmony.nn.losses.modules import MarginRankingLoss as MarginRankingLoss
from emberharmony.nn.losses.modules import MSELoss as MSELoss
from emberharmony.nn.losses.modules import MultiLabelMarginLoss as MultiLabelMarginLoss
from emberharmony.nn.losses.modules import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from emberharmony.nn.losses.modules import MultiMarginLoss as MultiMarginLoss
from emberharmony.nn.losses.modules import NLLLoss as NLLLoss
from emberharmony.nn.losses.modules import PoissonNLLLoss as PoissonNLLLoss
from emberharmony.nn.losses.modules import SmoothL1Loss as SmoothL1Loss
from emberharmony.nn.losses.modules import SoftMarginLoss as SoftMarginLoss
from emberharmony.nn.losses.modules import TripletMarginLoss as TripletMarginLoss
from emberharmony.nn.losses.modules import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
from emberharmony.nn.module import Module as Module
from emberharmony.nn.layers.normalization import BatchNorm1d as BatchNorm1d
from emberharmony.nn.layers.normalization import BatchNorm2d as BatchNorm2d
from emberharmony.nn.layers.normalization import BatchNorm3d as BatchNorm3d
from emberharmony.nn.layers.normalization import GroupNorm as GroupNorm
from emberharmony.nn.layers.normalization import InstanceNorm1d as InstanceNorm1d
from emberharmony.nn.layers.normalization import InstanceNorm2d as InstanceNorm2d
from emberharmony.nn.layers.normalization import InstanceNorm3d as InstanceNorm3d
from emberharmony.nn.layers.normalization import LayerNorm as LayerNorm
from emberharmony.nn.layers.normalization import LocalResponseNorm as LocalResponseNorm
from emberharmony.nn.layers.normalization import RMSNorm as RMSNorm
from emberharmony.nn.layers.padding import CircularPad1d as CircularPad1d
from emberharmony.nn.layers.padding import CircularPad2d as CircularPad2d
from emberharmony.nn.layers.padding import CircularPad3d as CircularPad3d
from emberharmony.nn.layers.padding import ConstantPad1d as ConstantPad1d
from emberharmony.nn.layers.padding import ConstantPad2d as ConstantPad2d
from emberharmony.nn.layers.padding import ConstantPad3d as ConstantPad3d
from emberharmony.nn.layers.padding import ReflectionPad1d as ReflectionPad1d
from emberharmony.nn.layers.padding import ReflectionPad2d as ReflectionPad2d
from emberharmony.nn.layers.padding import ReflectionPad3d as ReflectionPad3d
from emberharmony.nn.layers.padding import ReplicationPad1d as ReplicationPad1d
from emberharmony.nn.layers.padding import ReplicationPad2d as ReplicationPad2d
from emberharmony.nn.layers.padding import ReplicationPad3d as ReplicationPad3d
from emberharmony.nn.layers.padding import ZeroPad1d as ZeroPad1d
from emberharmony.nn.layers.padding import ZeroPad2d as ZeroPad2d
from emberharmony.nn.layers.padding import ZeroPad3d as ZeroPad3d
from emberharmony.nn.layers.pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from emberharmony.nn.layers.pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from emberharmony.nn.layers.pooling import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from emberharmony.nn.layers.pooling import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from emberharmony.nn.layers.pooling import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from emberharmony.nn.layers.pooling import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from emberharmony.nn.layers.pooling import AvgPool1d as AvgPool1d
from emberharmony.nn.layers.pooling import AvgPool2d as AvgPool2d
from emberharmony.nn.layers.pooling import AvgPool3d as AvgPool3d
from emberharmony.nn.layers.pooling import GlobalAvgPool as GlobalAvgPool
from emberharmony.nn.layers.pooling import GlobalMaxPool as GlobalMaxPool
from emberharmony.nn.layers.pooling import LPPool1d as LPPool1d
from emberharmony.nn.layers.pooling import LPPool2d as LPPool2d
from emberharmony.nn.layers.pooling import LPPool3d as LPPool3d
from emberharmony.nn.layers.pooling import MaxPool1d as MaxPool1d
from emberharmony.nn.layers.pooling import MaxPool2d as MaxPool2d
from emberharmony.nn.layers.pooling import MaxPool3d as MaxPool3d
from emberharmony.nn.layers.pooling import MaxUnpool1d as MaxUnpool1d
from emberharmony.nn.layers.pooling import MaxUnpool2d as MaxUnpool2d
from emberharmony.nn.layers.pooling import MaxUnpool3d as MaxUnpool3d
from emberharmony.nn.layers.positional import ALiBi as ALiBi
from emberharmony.nn.layers.positional import LearnedPositional as LearnedPositional
from emberharmony.nn.layers.positional import RoPE as RoPE
from emberharmony.nn.layers.positional import SinusoidalPositionalEncoding as SinusoidalPositionalEncoding
from emberharmony.nn.layers.recurrent import GRU as GRU
from emberharmony.nn.layers.recurrent import LSTM as LSTM
from emberharmony.nn.layers.recurrent import RNN as RNN
from emberharmony.nn.layers.recurrent import Bidirectional as Bidirectional
from emberharmony.nn.layers.recurrent_cells import GRUCell as GRUCell
from emberharmony.nn.layers.recurrent_cells import LSTMCell as LSTMCell
from emberharmony.nn.layers.recurrent_cells import RNNCell as RNNCell
from emberharmony.nn.rngs import Rngs as Rngs
from emberharmony.nn.layers.shaping import ChannelShuffle as ChannelShuffle
from emberharmony.nn.layers.shaping import Flatten as Flatten
from emberharmony.nn.layers.shaping import Fold as Fold
from emberharmony.nn.layers.shaping import Permute as Permute
from emberharmony.nn.layers.shaping import PixelShuffle as PixelShuffle
from emberharmony.nn.layers.shaping import PixelUnshuffle as PixelUnshuffle
from emberharmony.nn.layers.shaping import Reshape as Reshape
from emberharmony.nn.layers.shaping import Unflatten as Unflatten
from emberharmony.nn.layers.shaping import Unfold as Unfold
from emberharmony.nn.state import Loaded as Loaded
from emberharmony.nn.layers.transformer import Transformer as Transformer
from emberharmony.nn.layers.transformer import TransformerDecoder as TransformerDecoder
from emberharmony.nn.layers.transformer import TransformerDecoderLayer as TransformerDecoderLayer
from emberharmony.nn.layers.transformer import TransformerEncoder as TransformerEncoder
from emberharmony.nn.layers.transformer import TransformerEncoderLayer as TransformerEncoderLayer
from emberharmony.nn.layers.transposed import ConvTranspose1d as ConvTranspose1d
from emberharmony.nn.layers.transposed import ConvTranspose2d as ConvTranspose2d
from emberharmony.nn.layers.transposed import ConvTranspose3d as ConvTranspose3d
from emberharmony.nn.layers.upsampling import Upsample as Upsample
from emberharmony.nn.layers.upsampling import UpsamplingBilinear2d as UpsamplingBilinear2d
from emberharmony.nn.layers.upsampling import UpsamplingNearest2d as UpsamplingNearest2d

__all__ = [
    *("Buffer", "Loaded", "Module", "Parameter", "Rngs"),
    *("History", "NonFiniteLossWarning", "Step", "data", "fit"),
    *("build", "functional_call", "merge", "split", "value_and_grad"),
    *("Lambda", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Remat", "Repeat", "Residual"),
    "Sequential",
    *("Bilinear", "Identity", "Linear"),
    *("init", "losses", "metrics"),
    *(
        "CrossEntropyLoss",
        "NLLLoss",
        "BCELoss",
        "BCEWithLogitsLoss",
        "FocalLoss",
        "DiceLoss",
        "KLDivLoss",
        "MSELoss",
        "L1Loss",
        "SmoothL1Loss",
        "HuberLoss",
        "LogCoshLoss",
        "GaussianNLLLoss",
        "PoissonNLLLoss",
        "HingeLoss",
        "SoftMarginLoss",
        "MarginRankingLoss",
        "MultiMarginLoss",
        "MultiLabelMarginLoss",
        "MultiLabelSoftMarginLoss",
        "HingeEmbeddingLoss",
        "CosineEmbeddingLoss",
        "TripletMarginLoss",
        "TripletMarginWithDistanceLoss",
        "CTCLoss",
    ),
    *("Conv1d", "Conv2d", "Conv3d"),
    *("DepthwiseConv1d", "DepthwiseConv2d", "DepthwiseConv3d"),
    *("SeparableConv1d", "SeparableConv2d", "SeparableConv3d"),
    *("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"),
    *("AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d"),
    *("AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d"),
    *("AvgPool1d", "AvgPool2d", "AvgPool3d"),
    *("LPPool1d", "LPPool2d", "LPPool3d"),
    *("MaxPool1d", "MaxPool2d", "MaxPool3d"),
    *("MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d"),
    *("GlobalAvgPool", "GlobalMaxPool"),
    *("CircularPad1d", "CircularPad2d", "CircularPad3d"),
    *("ConstantPad1d", "ConstantPad2d", "ConstantPad3d"),
    *("ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d"),
    *("ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d"),
    *("ZeroPad1d", "ZeroPad2d", "ZeroPad3d"),
    *("ChannelShuffle", "Flatten", "Fold", "Permute", "PixelShuffle", "PixelUnshuffle", "Reshape"),
    *("Unflatten", "Unfold"),
    *("Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"),
    *("CELU", "ELU", "GEGLU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "Heaviside"),
    *("LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU2", "ReLU6", "SELU", "SiLU"),
    *("Sigmoid", "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "SwiGLU", "Tanh"),
    *("Tanhshrink", "Threshold"),
    *("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"),
    *("LayerNorm", "LocalResponseNorm", "RMSNorm"),
    *("AlphaDropout", "DropPath", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"),
    *("GaussianDropout", "GaussianNoise"),
    *("KVCache", "MultiHeadAttention", "MultiheadAttention"),
    *("ALiBi", "LearnedPositional", "RoPE", "SinusoidalPositionalEncoding"),
    *("Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer"),
    *("ConvLSTM2d", "GRU", "LSTM", "RNN", "Bidirectional", "GRUCell", "LSTMCell", "RNNCell"),
    *("Embedding", "EmbeddingBag"),
    *("LoRALinear", "add_lora", "parametrize"),
]
