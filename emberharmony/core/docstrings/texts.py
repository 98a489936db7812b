"""What the parameters of several ops have in common, written once; `completion` fills it into their docstrings.

A key is the name of a parameter, as its declaration spells it where that tells: with its annotation, with its default,
and with ", keepdims" if the op has this option too. A category in front of it, such as `fft.`, limits it to the ops of
this category. The most particular key counts.
"""

_NORMALIZED = "the axis or the axes over which the op normalizes, from -ndim to ndim - 1; None takes all of them."
_WINDOWS = "one integer, or one for each spatial axis"
_SPATIAL = (
    '"channels_last" for tensors (batch, *spatial, channels), "channels_first" for (batch, channels, *spatial); None '
    'is "channels_last".'
)
_IMAGES = (
    '"channels_last" for images (height, width, channels) or a batch of them, "channels_first" for (channels, height, '
    'width); None is "channels_last".'
)
_PIXELS = (
    "(height, width, channels), or a batch (batch, height, width, channels); with `data_format` the channels may come "
    "first. Not complex."
)
_WIDENED = "None is int64 for booleans and signed integers, uint64 for unsigned ones, and else the dtype of `x`."
_FLOATING = "a floating dtype for the numbers; None is the default float."
_REAL = "a tensor of any shape, not complex; integers become the default float."
_SEQUENCES = "(batch, time, features), or (time, batch, features) with `time_major`; integers become the default float."

SHARED: dict[str, str] = {
    # axes and shapes
    "axis: Axis = None, keepdims": (
        "the axis or the axes to reduce, from -ndim to ndim - 1; None, the default, reduces all of them."
    ),
    "axis: int | None = None, keepdims": (
        "the axis to search, from -ndim to ndim - 1; None, the default, searches the flattened tensor."
    ),
    "axis: int | None = None": "the axis to work along, from -ndim to ndim - 1; None, the default, flattens `x` first.",
    "axis: int | None = -1": "the axis to work along, by default the last; None flattens `x` first.",
    "axis: int = -1": "the axis to work along, from -ndim to ndim - 1; by default the last.",
    "axis: int = 0": "the axis to work along, from -ndim to ndim - 1; by default the first.",
    "axis: Axis = -1": _NORMALIZED,
    "keepdims": "whether the reduced axes stay, with length 1, so that the result broadcasts against `x`.",
    "shape: Shape": "the shape of the result: a length, or a sequence of lengths.",
    # dtypes and devices
    "dtype: DTypeLike": 'the dtype of the result: a dtype of any library, or a name such as "float32".',
    "creation.dtype: DTypeLike | None = None": "the dtype of the result; None is the default float.",
    "reduction.dtype: DTypeLike | None = None": f"the dtype to which elements are cast first. {_WIDENED}",
    "statistics.dtype: DTypeLike | None = None": f"the dtype to which elements are cast first. {_WIDENED}",
    "linalg.dtype: DTypeLike | None = None": f"the dtype to which elements are cast first. {_WIDENED}",
    "random.dtype: DTypeLike | None = None": _FLOATING,
    "distributions.dtype: DTypeLike | None = None": _FLOATING,
    "fft.dtype: DTypeLike | None = None": _FLOATING,
    "device: DeviceLike | None = None": (
        'the device of the result, such as "cpu" or "gpu:1"; None is the default device.'
    ),
    # random numbers
    "seed: Any = None": (
        "an integer or a `Generator`, from which every backend draws the same numbers; None draws from the default "
        "stream of the backend."
    ),
    "generator": "a `Generator` to draw from, in place of `seed`; None leaves the choice to `seed`.",
    # tensors, by category
    "reduction.x": "a tensor of any shape and dtype.",
    "statistics.x": "a tensor of any shape and dtype.",
    "shape.x: TensorLike": "a tensor of any shape and dtype.",
    "quantiles.x": _REAL,
    "quantiles.method": (
        'how to choose a value between two neighbouring elements: "linear" interpolates, "lower", "higher" and '
        '"nearest" take one of them, "midpoint" takes their mean.'
    ),
    "segments.data": "(n, …): one slice along the first axis for each of the ids; integers or floats.",
    "segments.segment_ids": "(n,): the segment of each slice, an integer from 0.",
    "segments.num_segments": (
        "the length of the first axis of the result; None is the largest id plus 1, which forces evaluation on MLX."
    ),
    "segments.sorted": "whether the ids ascend; accepted for compatibility, without effect.",
    "special.x: TensorLike": _REAL,
    "transcendental.x: TensorLike": _REAL,
    "solver.x": "square matrices (..., n, n), real or complex; integers become the default float.",
    "creation.x: int": "the number of points; 0 gives no points.",
    "fft.x: ComplexTensorLike": "a real or complex tensor; integers become the default float.",
    "fft.x: TensorLike": "a real tensor; integers become the default float, complex ones raise a `DTypeError`.",
    "activation.x": _REAL,
    "sparse: bool = False": "an option of Keras; only False is accepted.",
    "epsilon: Varying = 0.001": "added to the variance, so that nothing is divided by 0: a number, or a tensor.",
    "quantization.bits": "the width of a packed integer, 4 or 8.",
    "quantization.group_size": "how many adjacent values share a scale and a bias: 32, 64 or 128.",
    # Fourier transforms
    "norm: Norm": (
        'which transform is divided by the length: "backward" the inverse one, "forward" the forward one; "ortho" '
        "divides both by its square root."
    ),
    "fft.n: int | None": "the length to which `axis` is cut, or padded with zeros at its end; None leaves it.",
    "fft.s": "the lengths to which `axes` are cut, or padded with zeros at their ends; None leaves them.",
    "fft.axes: Sequence[int] | None": "the axes to transform; None takes the last `len(s)`, or all axes without `s`.",
    "fft.axes: Sequence[int]": "the two axes to transform; by default the last two.",
    # windows over spatial axes
    "convolution.data_format": _SPATIAL,
    "pooling.data_format": _SPATIAL,
    "strides: int | Sequence[int]": f"by how many elements neighbouring windows are apart: {_WINDOWS}.",
    "pooling.strides: int | Sequence[int] | None": (
        f"by how many elements neighbouring windows are apart: {_WINDOWS}; None is `pool_size`."
    ),
    "dilation_rate": f"by how many elements those of a window are apart: {_WINDOWS}.",
    "padding: SpatialPadding": (
        '"valid" adds nothing; "same" pads so that the length is divided by the stride and rounded up; or the number '
        f"of elements to add at both ends: {_WINDOWS}, or one pair (before, after) for each."
    ),
    "pool_size": f"the lengths of the window: {_WINDOWS}.",
    "convolution.inputs": "(batch, *spatial, in_channels), or with the channels first; see `data_format`.",
    "pooling.inputs": (
        "(batch, *spatial, channels), or with the channels first; see `data_format`. Integers become the default float."
    ),
    "pooling.ceil_mode": "whether elements that are left at the end of an axis get a window of their own.",
    # images
    "image.images": _PIXELS,
    "resampling.images": _PIXELS,
    "warping.images": _PIXELS,
    "data_format": _IMAGES,
    "fill_value: Varying": "the value outside the images: a number, or a tensor that broadcasts to the result.",
    "fill_mode": (
        'how the images continue outside: "constant" (`fill_value`), "nearest" (the edge pixel), "wrap" (they repeat), '
        '"mirror" (mirrored about the centre of the edge pixel) or "reflect" (about its outer side).'
    ),
    "interpolation: Literal['bilinear', 'nearest']": (
        '"bilinear" weights the four neighbouring pixels by their distance, "nearest" takes the closest one.'
    ),
    # recurrent layers
    "recurrent.x": _SEQUENCES,
    "time_major": "whether sequences are (time, batch, features); else they are (batch, time, features).",
    "recurrent.reverse": "whether the layer reads the sequences from their ends; each output stays at its input.",
    "layer_axis": "whether given and returned states are (1, batch, hidden), as those of PyTorch, or (batch, hidden).",
    "recurrent.h": "the first state, (batch, hidden), or (1, batch, hidden) with `layer_axis`; None is zeros.",
    "recurrent.bias_ih": "(gates * hidden,), which is added to the products with the input; None is no bias.",
    "recurrent.bias_hh": "(gates * hidden,), which is added to the products with the state; None is no bias.",
    "recurrent.weight_ih": "(gates * hidden, features), with the gates one below the other.",
    "recurrent.weight_hh": "(gates * hidden, hidden), with the gates one below the other.",
}

NONE = {"rng": "None makes a generator whose seed is drawn from the default stream."}
"""By the name of a parameter, what None means wherever it is the default and no text says it."""

_STATE = "what `state_dict` returned, or a copy of it that went through a file."
METHODS = {
    "load_state_dict.state": _STATE,
    "load_state_dict.state_dict": _STATE,
    "loading_steps.state": _STATE,
    "loading_steps.state_dict": _STATE,
    "wrapper_loading_steps.state_dict": _STATE,
    "ArrayBase.axis": "the axis or the axes to reduce; None reduces all of them.",
    "ArrayBase.dtype": "the dtype of the result, or its name; None leaves the choice to the op.",
    "ArrayBase.out": "only None is accepted, which libraries that are written for NumPy's arrays pass.",
    "ArrayBase.keepdims": "whether the reduced axes stay, with length 1.",
    "DataParallel.options": "the options that the method of `Module` takes.",
    "add_sums.sums": "sums by name, as the `sums` of another metric of the same class.",
    "error_sum.difference": "the differences of predictions and targets, a tensor.",
    "numerator_and_denominator.right": "how many examples of the class were predicted as such.",
    "numerator_and_denominator.false_positive": "how many examples of others were predicted as of the class.",
    "numerator_and_denominator.false_negative": "how many examples of the class were predicted as of another.",
    "put_member.key": "the name of the place, as `members` gives it.",
    "put_member.member": "what is put there.",
    "is_leaf": "a function that returns whether an object counts as a leaf; None takes those that are no nodes.",
}
"""What parameters of functions and methods mean, by their name, perhaps after that of the function or class."""

TAKES = {
    "all": "Any dtype",
    "numeric": "Integers, floats or complex numbers",
    "real": "Booleans, integers or floats",
    "real numeric": "Integers or floats",
    "integer": "Integers",
    "integer or boolean": "Integers or booleans",
}
"""The dtypes of an operand, by what the facts of an op say that it takes."""

GIVES = {"": "", "float": "; integers become the default float", "bool": "", "real": ""}
"""What becomes of an operand, by what the facts say that the op gives."""

ALONE, BESIDE = "a tensor of any shape.", "a tensor or number, which broadcasts against {others}."
"""An operand of an elementwise op without others, and beside others."""
