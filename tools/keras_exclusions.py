"""The tests of Keras that `keras_tests.py` does not count when they fail, each with the reason."""

import re

_PAIRS = "complex tensors, where Keras has pairs of parts"
_NARROWER = "Keras refuses or warns of what is valid here"
_CLASS = "the class of an error differs"
WIDE = "integers have 64 bits, and float64 has complex128"
_DTYPE = "another dtype, as the table 'Coming from Keras' says"
_ATTRIBUTES = "uses the attributes of an operation"

WIDE_INTEGERS = re.compile(r"AssertionError: 'u?int64' != 'u?int(8|16|32)'")
"""The message of a test that expects an integer dtype of Keras where ours has 64 bits."""

EXCLUDED: tuple[tuple[str, str], ...] = (
    ("*.NumpyTwoInputOpsCorrectnessTest.test_digitize", WIDE),
    ("*.ViewAsComplexRealTest.test_view_as_complex_basic", WIDE),
    *((f"*.NumpyDtypeTest.test_{name}_*", _DTYPE) for name in ("bincount", "ceil", "correlate", "floor", "square")),
    *((f"*.NumpyDtypeTest.test_{name}_55", _DTYPE) for name in ("einsum", "matmul")),
    ("*.NumpyDtypeTest.test_full_10", _DTYPE),
    *((f"*.NNOpsDtypeTest.test_{name}_*", _DTYPE) for name in ("ctc_loss", "layer_normalization", "rms_normalization")),
    *(
        (f"*.NumpyDtypeTest.test_{name}_*", "the points of a window are an integer")
        for name in ("bartlett", "blackman", "hamming", "hanning", "kaiser")
    ),
    ("*.CoreOpsCorrectnessTest.test_cast_float8*", "there are no dtypes of 8 bits"),
    ("*.CoreOpsDtypeTest.test_saturate_cast_10", "None is no dtype of saturate_cast"),
    *((f"*.MathOpsCorrectnessTest.test_{name}", _PAIRS) for name in ("fft", "fft2", "ifft2")),
    *((f"*.MathOpsCorrectnessTest.test_{name}_*", _PAIRS) for name in ("rfft", "irfft", "stft", "istft")),
    ("*.test_basic_decomposition_and_rearrangement", "rearrange takes the lengths of axes as a dict"),
    ("*.test_gaussian_blur*", "kernel_size and sigma are (vertical, horizontal), which the code of Keras swaps"),
    ("*.CoreOpsBehaviorTests.test_convert_to_numpy", "the array of to_numpy may be read-only"),
    ("*.test_where", "where takes three arguments, as in the array API"),
    ("*.test_cross", "vectors of two components, which NumPy and the array API refuse"),
    ("*.NumpyOneInputOpsCorrectnessTest.test_bincount_0", "bincount takes vectors, not batches of them"),
    ("*.NumpyOneInputOpsCorrectnessTest.test_unique", "unique keeps one NaN"),
    ("*.test_segment_reduce_explicit_num_segments_*", "a segment that is out of range raises IndexOutOfBoundsError"),
    ("*.LinalgOpsCorrectnessTest.test_solve_triangular", "one axis less than `a` is no batch of vectors"),
    ("*.LinalgOpsCorrectnessTest.test_qr", "R has a positive diagonal"),
    ("*.NNOpsCorrectnessTest.test_moments", "a variance beyond float16 is infinite, and not clipped"),
    *(
        (f"*.test_{name}", _NARROWER)
        for name in (
            *("histogram_high_dimensional_input", "space_to_depth_block_size_validation"),
            *("depth_to_space_block_size_validation", "softmax_on_axis_with_size_one_warns"),
            *("layer_normalization_rms_scaling_warning", "normalize_order_validation", "stft_invalid_input_type"),
            *("scan_invalid_arguments", "map_coordinates_invalid_coordinates_rank", "categorical_errors"),
        )
    ),
    ("*.test_stft_invalid_sequence_stride*", _CLASS),
    ("*.RandomBehaviorTest.test_*_dtype_validation", _CLASS),
    ("*.test_hsv_to_rgb_invalid_dtype", _CLASS),
    ("*.test_rgb_to_hsv_invalid_dtype", _CLASS),
    ("*.test_extract_patches*_invalid_size*", _CLASS),
    ("*.test_extract_sequences_init_length_*", _ATTRIBUTES),
    ("*.QrOpTest.test_qr_init_invalid_mode", _ATTRIBUTES),
)
"""Patterns of the names of tests (`file.Class.test`) and the reasons why they may fail; tests that pass count."""
