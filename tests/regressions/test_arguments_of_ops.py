"""Arguments of ops that were misread, or refused with an error of the library, each as the program that showed it."""

import math

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.registry import OPS
from emberharmony.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    BackendExecutionError,
    DTypeError,
    EmberError,
    IndexOutOfBoundsError,
    OutOfMemoryError,
)
from emberharmony.testing.sample import cast_to_dtype
from emberharmony.testing.samples import all_samples

EVERY = [name for name in ("numpy", "torch", "mlx", "jax", "dask") if name in ops.available_backends()]
"""All installed backends, JAX and Dask too, which tests with the fixture `backend` leave out."""


@pytest.mark.parametrize("op", ["fft.fft", "fft.ifft", "fft2", "ifft2", "irfft", "hfft", "fft.fftn", "irfft2", "istft"])
def test_a_pair_of_parts_is_no_complex_tensor(op: str, backend: str) -> None:
    space, _, name = op.rpartition(".")
    function = getattr(getattr(ops, space) if space else ops, name)
    real, imaginary = ops.ones((2, 5, 3)), ops.ones((2, 5, 3))
    options = (4, 2, 4) if op == "istft" else ()
    whole = ops.view_as_complex(ops.stack([real, imaginary], -1))
    assert len(function(whole, *options).shape) == (2 if op == "istft" else 3)
    for pair in ((real, imaginary), [real, imaginary], (np.ones((2, 5, 3)), imaginary)):
        with pytest.raises(ArgumentTypeError, match=r"ops\.view_as_complex\(ops\.stack\(\[re, im\], -1\)\)"):
            function(pair, *options)
    # Numbers, and more or fewer tensors than two, are no pair.
    if op != "istft":
        for given in ([[1.0, 2.0], [3.0, 4.0]], [real] * 3, [whole, whole]):
            assert function(given, *options).shape[0] == len(given)


WIDE = 2**64 - 1
READS = {
    "take": lambda x, i: ops.take(x, i),
    "take along": lambda x, i: ops.take_along_axis(x, i),
    "get": lambda x, i: ops.get_item(x, i),
    "get one": lambda x, i: ops.get_item(x, i[0]),
    "get pair": lambda x, i: ops.get_item(ops.stack([x, x]), (slice(None), i)),
    "embedding": lambda x, i: ops.embedding(i, x[:, None]),
    "set": lambda x, i: ops.set_item(x, i, 9.0),
    "set pair": lambda x, i: ops.set_item(x, (i,), 9.0),
    "put": lambda x, i: ops.put_along_axis(x, i, 9.0),
    "scatter": lambda x, i: ops.scatter_update(x, i[:, None], ops.ones(1)),
    "unpool": lambda x, i: ops.max_unpool(ops.ones((1, 1, 1)), i[:, None, None], (3,)),
}


@pytest.mark.parametrize("read", READS)
def test_an_index_beyond_int64_does_not_wrap_around(read: str, backend: str) -> None:
    x = ops.asarray([1.0, 2.0, 3.0])
    assert READS[read](x, ops.asarray([2], dtype="uint64")) is not None
    with ops.checked(), pytest.raises(IndexOutOfBoundsError):
        READS[read](x, ops.asarray([WIDE], dtype="uint64"))
    if backend == "mlx" and read in ("set", "set pair", "put"):
        # Outside of checked mode MLX writes nothing at an index out of bounds.
        assert READS[read](x, ops.asarray([WIDE], dtype="uint64")).tolist() == [1.0, 2.0, 3.0]


def test_a_list_of_indices_beyond_int64_does_not_wrap_around(backend: str) -> None:
    x = ops.asarray([1.0, 2.0, 3.0])
    for key in ([WIDE], np.array([WIDE], np.uint64), np.uint64(WIDE), (np.array([WIDE], np.uint64),)):
        with pytest.raises(IndexOutOfBoundsError):
            ops.get_item(x, key)
        with pytest.raises(IndexOutOfBoundsError):
            ops.set_item(x, key, 0.0)


@pytest.mark.parametrize(
    "op",
    [
        *("sum", "mean", "prod", "max", "min", "any", "all", "argmax", "argmin", "var", "std", "ptp", "count_nonzero"),
        *("softmax", "log_softmax", "layer_normalization", "rms_normalization", "nansum", "nanmax", "average", "norm"),
    ],
)
def test_a_tensor_without_axes_has_no_axis(op: str, backend: str) -> None:
    for axis in (-1, 0):
        with pytest.raises(AxisError):
            getattr(ops, op)(ops.asarray(2.0), axis=axis)
    if op not in ("average", "norm"):
        with pytest.raises(AxisError):
            getattr(ops, op)(ops.asarray(2.0), axis=(0,)) if "arg" not in op else getattr(ops, op)(ops.asarray(2.0), 1)


def test_the_loss_of_a_tensor_without_axes_is_refused(backend: str) -> None:
    with pytest.raises(AxisError):
        ops.categorical_crossentropy(ops.asarray(1.0), ops.asarray(1.0))


def test_no_axis_stands_for_all_axes(backend: str) -> None:
    x = ops.reshape(ops.arange(6.0), (2, 3))
    for far in (-(2**31), -(2**31) - 1, 2**31, -(2**63), 2**63):
        for call in (
            lambda axis: ops.argmax(x, axis=axis),
            lambda axis: ops.argmin(x, axis=axis),
            lambda axis: ops.argmax(ops.asarray(5), axis=axis),
            lambda axis: ops.sum(x, axis=axis),
            lambda axis: ops.cumsum(x, axis=axis),
            lambda axis: ops.sort(x, axis=axis),
            lambda axis: ops.take(x, [0], axis=axis),
            lambda axis: ops.repeat(x, 2, axis=axis),
            lambda axis: ops.concatenate([x, x], axis=axis),
            lambda axis: ops.append(x, x, axis=axis),
        ):
            with pytest.raises(AxisError):
                call(far)


def _with_each_integer(value: object) -> list[tuple[str, object]]:
    """Returns what each op does if one of its integer options is a value: the error, or the result."""
    found: list[tuple[str, object]] = []
    for op, row in all_samples().items():
        if not row.cases or OPS[op].takes_callable:
            continue
        item, parameters = row.cases[0], OPS[op].parameters
        for place, parameter in enumerate(parameters):
            if not parameter.whole or parameter.variadic:
                continue
            # Native tensors, because dispatch would convert the options together with arrays of another library.
            args = [ops.asarray(x) if isinstance(x, np.ndarray) else x for x in cast_to_dtype(item.args, "float32")]
            named = dict(item.kwargs)
            if place < len(args) and not parameter.keyword_only:
                args[place] = value
            else:
                named[parameter.name] = value
            try:
                result: object = OPS[op].function(*args, **named)
            except Exception as error:  # noqa: BLE001  (an untyped error is what the tests look for)
                result = error
            found.append((f"{op}({parameter.name}=...)", result))
    return found


def test_a_boolean_tensor_is_no_integer(backend: str) -> None:
    found = _with_each_integer(ops.asarray(True))
    assert len(found) > 200
    assert [where for where, result in found if not isinstance(result, EmberError)] == []


def test_a_tensor_of_fractions_is_no_integer(backend: str) -> None:
    found = _with_each_integer(ops.asarray([1.5, 2.5]))
    assert [where for where, result in found if not isinstance(result, EmberError)] == []


def test_an_integer_beyond_int64_in_a_tensor_is_one_of_python(backend: str) -> None:
    found, wanted = (
        {where: type(result) for where, result in _with_each_integer(value) if isinstance(result, Exception)}
        for value in (ops.asarray(2**63, dtype="uint64"), 2**63)
    )
    assert found == wanted
    assert BackendExecutionError not in found.values()


def test_an_integer_option_may_be_a_tensor(backend: str) -> None:
    x = ops.reshape(ops.arange(6.0), (2, 3))
    one = ops.asarray(1, dtype="uint8")
    assert ops.sum(x, one).tolist() == [3.0, 12.0]
    assert ops.sum(x, (0, one)).tolist() == 15.0
    assert tuple(ops.zeros(ops.asarray([2, 3])).shape) == (2, 3)
    assert tuple(ops.zeros([one, 3]).shape) == (1, 3)
    assert ops.diff(x, one).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert tuple(ops.pad(x, ops.asarray([[1, 0], [0, 2]])).shape) == (3, 5)


def test_unsuitable_arguments_raise_typed_errors_that_say_what_is_wanted(backend: str) -> None:
    x = ops.asarray([1.0, 2.0, 3.0])
    two = ops.asarray([1.5, 2.5])
    mask = ops.asarray([True, False, True])
    for error, text, call in (
        (ArgumentTypeError, "subscripts is a text", lambda: ops.einsum(x)),
        (ArgumentTypeError, "axes_lengths is a mapping", lambda: ops.rearrange(x, "a -> a", 3)),
        (ArgumentTypeError, "n must be an integer", lambda: ops.diff(x, two)),
        (ArgumentTypeError, "bins must be an integer", lambda: ops.histogram(x, two)),
        (ArgumentTypeError, "k must be an integer", lambda: ops.top_k(x, two)),
        (ArgumentTypeError, "n must be an integer", lambda: ops.fft.fft(x, two)),
        (ArgumentTypeError, "num_classes is an integer", lambda: ops.one_hot([0, 1], math.nan)),
        (ArgumentTypeError, "num_classes is an integer", lambda: ops.one_hot([0, 1], 2.5)),
        (ArgumentError, "length-1|ambiguous", lambda: ops.matrix_norm(ops.ones((2, 2)), ord=two)),
        (ArgumentError, "a range is a pair", lambda: ops.histogram(x, 10, (1,))),
        (ArgumentError, "finite", lambda: ops.arange(0, math.inf)),
        (ArgumentError, "finite", lambda: ops.arange(0, 5, math.nan)),
        (ArgumentError, "finite", lambda: ops.eval_shape(lambda: ops.arange(-math.inf, 0.0))),
        (OutOfMemoryError, r"pad\(\)", lambda: ops.stft(ops.ones(16), 4, 2, 2**64)),
        (DTypeError, r"ops\.nonzero\(condition\)", lambda: ops.where(mask)),
        (DTypeError, r"ops\.nonzero\(condition\)", lambda: ops.where(mask, x, None)),
    ):
        with pytest.raises(error, match=text) as caught:
            call()
        assert type(caught.value) is error


@pytest.mark.parametrize(
    "option", ["average_pool.padding", "max_pool.dilation_rate", "one_hot.axis", "take_along_axis.axis"]
)
def test_a_tensor_in_place_of_an_option_raises_no_error_of_the_library(option: str, backend: str) -> None:
    op, _, name = option.partition(".")
    args = {"one_hot": ([0, 1], 3), "take_along_axis": (ops.ones((2, 2)), ops.asarray([[0], [1]]))}
    for value in (ops.asarray([1.5, 2.5]), ops.asarray([3, 4])):
        with pytest.raises(EmberError):
            getattr(ops, op)(*args.get(op, (ops.ones((1, 4, 1)), 2)), **{name: value})


@pytest.mark.parametrize("name", EVERY)
def test_the_product_of_one_complex_number_is_that_number(name: str) -> None:
    z = complex(math.inf, 0)
    with ops.use_backend(name):
        for x, axis in ((z, None), ([z], None), ([[z], [2.0]], 1)):
            found = ops.to_numpy(ops.prod(ops.asarray(x), axis=axis)).ravel()
            assert found.tolist() == np.asarray(x, np.complex64).ravel()[: found.size].tolist(), (x, axis)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_zeros_below_the_diagonal_of_a_triangular_factor_are_positive(name: str, dtype: str) -> None:
    with ops.use_backend(name):
        try:
            x = ops.cast([[-1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 1.0], [-3.0, 0.5, 2.0]], dtype)
            factors = [ops.to_numpy(ops.qr(x, mode).R) for mode in ("reduced", "complete")]
        except DTypeError:
            pytest.skip("the backend lacks the dtype")
    for r in factors:
        below = r[np.tril_indices(len(r), -1, r.shape[1])]
        assert not np.signbit(below.real).any()
        assert not below.any()
