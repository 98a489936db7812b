"""Neural networks: activations, normalisations, convolutions, pools, attention, losses."""

from emberharmony.core.names.spaces import fill_namespace
from emberharmony.ops import _modules
from emberharmony.ops.arrays.indexing import one_hot

fill_namespace(
    globals(),
    _modules,
    (
        *("neural.activation", "neural.attention", "neural.convolution", "neural.layers", "neural.losses"),
        *("neural.normalization", "neural.pooling", "neural.quantization", "neural.recurrent", "neural.sequences"),
        "images.interpolation",
    ),
    without=("extract_sequences",),
    also={"one_hot": one_hot},
)
