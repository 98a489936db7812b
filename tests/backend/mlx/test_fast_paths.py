"""On MLX, every way of an op has the values, gradients, dtypes, shapes and errors that NumPy has in float64."""

from functools import partial
from itertools import product
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from tests.backend.mlx_outcomes import assert_as_numpy, drawn
from tests.sampling import portion

mx = pytest.importorskip("mlx.core")

from emberharmony.backend.mlx.reductions import segments_ops

SHAPES = [(), (1,), (0,), (3,), (64,), (65,), (3, 0), (2, 65), (65, 2), (130, 65), (3, 4096), (4, 3, 800)]
AXES = [None, 0, -1, (0, 1), ()]
KINDS = ["float32", "float64", "float16", "bfloat16"]
KEPT = ["sum", "mean", "var", "std", "logsumexp", "max", "min", "any", "all", "prod", "argmax", "argmin"]
ALONG = ["cumsum", "cumprod", "cummax", "cummin", "sort", "argsort", "softmax", "log_softmax"]


@pytest.mark.parametrize("name", [*KEPT, *ALONG])
def test_along_axes(name: str) -> None:
    op, single = (
        getattr(ops, name),
        name in ("argmax", "argmin", "cumsum", "cumprod", "cummax", "cummin", "argsort", "sort"),
    )
    for shape, axis, keepdims in product(SHAPES, AXES, [False, True] if name in KEPT else [None]):
        if (not shape and axis in (0, -1)) or (single and axis.__class__ is tuple):
            continue  # NumPy takes axis 0 of a tensor without axes
        options = {"axis": axis} if keepdims is None else {"axis": axis, "keepdims": keepdims}
        x = drawn(*shape, low=0.5)
        x = x ** np.float32(4 / max(x.size, 1)) if "prod" in name else x
        assert_as_numpy(partial(op, **options), [x], eps=16.0, gradients=bool(keepdims) or axis == -1)
    for kind, shape, axis in product(KINDS[1:], [(3,), (65,), (3, 0), (4, 3000)], [None, -1]):
        if axis is None and name in ("softmax", "log_softmax"):
            continue
        x = drawn(*shape, low=0.5)
        x = x ** np.float32(4 / max(x.size, 1)) if "prod" in name else x
        assert_as_numpy(partial(op, axis=axis), [x], kind, 16.0, gradients=False)


PLAIN = """relu sigmoid softplus log_sigmoid silu erf erfc i0 exp sin cos tan tanh expm1 exp2 log2 log10 erfinv sign
    absolute reciprocal square trunc floor isnan signbit"""
ELEMENTS = {
    **{name: [getattr(ops, name)] for name in PLAIN.split()},
    "gelu": [partial(ops.gelu, approximate=flag) for flag in (True, False)],
    "elu": [partial(ops.elu, alpha=alpha) for alpha in (1.0, 1, 0.3, np.float32(0.3))],
    "leaky_relu": [partial(ops.leaky_relu, negative_slope=s) for s in (0.2, 0, 1, 1.5, -0.5, np.float32([[0.5]]))],
    "clip": [partial(ops.clip, x_min=low, x_max=high) for low, high in product((None, 0.5, -1), (None, 1.5, 1))],
    "round": [partial(ops.round, decimals=n) for n in (0, 2, -1)],
    "nan_to_num": [partial(ops.nan_to_num, nan=nan, posinf=high, neginf=-3) for nan, high in ((0.0, 1e9), (1, 2))],
}


@pytest.mark.parametrize("name", ELEMENTS)
def test_elementwise(name: str) -> None:
    ends = np.array([nan, inf, -inf, -0.0, 0.0, 1e-30, -1.5, 1.0, -1.0, 30.0, -30.0, 0.5], np.float32)
    for call, x in product(ELEMENTS[name], [drawn(), drawn(0), drawn(3, 0), drawn(2, 3), drawn(1025, low=0.3), ends]):
        x = np.asarray(x * np.float32(0.4)) if name == "erfinv" else x
        smooth = x is not ends and name not in ("round", "trunc", "floor", "isnan", "signbit")
        assert_as_numpy(call, [x], eps=16.0, gradients=smooth)
        for kind in KINDS[1:]:
            # All but gelu are computed in float32, and rounded once.
            usual, eps = x is not ends, 16.0 if "64" in kind else 2.0 if name == "gelu" else 0.51
            assert_as_numpy(call, [x if usual else drawn(2, 3)], kind, eps, gradients=smooth and kind == "float64")


def classes(*shape: int, count: int, low: int = -1) -> Any:
    """Returns class ids, some of which may be out of range."""
    return np.random.default_rng(7).integers(low, count, shape)


def checked(call: Any, cases: Any, eps: float = 16.0, gradients: bool = True, kinds: Any = ("float32",)) -> None:
    for case, kind in product(cases, kinds):
        assert_as_numpy(call, case, kind, eps, gradients)


def test_losses() -> None:
    shapes = [(3,), (2, 5), (0, 3), (2, 3, 4), (3, 1025), (1030, 3)]
    cases = [(drawn(*s), np.asarray(classes(*s[:-1], count=s[-1], low=0))) for s in shapes]
    cases += [(drawn(3, 2), np.array(ids)) for ids in ([0, 1, -100], [-100] * 3, [-100, 1, -100])]
    cases += [(x, t.astype("int32")) for x, t in cases[1:4]] + [
        (drawn(2, 3), np.array([0, 1], "uint8")),
        (drawn(2, 3), np.zeros((2, 1), int)),
    ]
    for logits, axis in product((True, False), (-1, 1)):
        checked(
            partial(ops.sparse_categorical_crossentropy, from_logits=logits, axis=axis),
            [(t, abs(x)) for x, t in cases if x.size and t.min() >= 0],
        )
    options = [{}, *({"reduction": name} for name in ("sum", "none", "median")), {"label_smoothing": 0.1}]
    options += [{"axis": 1}, {"axis": -2}, {"ignore_index": 1}, {"ignore_index": -1}]
    options += [{"ignore_index": i, "label_smoothing": 0.3 * i, "reduction": "none"} for i in (0, 2)]
    for chosen in options:
        known = [(x, t) for x, t in cases if "ignore_index" not in chosen or not t.size or t.min() >= 0]
        checked(partial(ops.cross_entropy, **chosen), known)
        checked(partial(ops.cross_entropy, **chosen), known[:4], 64.0, kinds=["float64"])
    checked(lambda x, t, w: ops.cross_entropy(x, t, w), [(drawn(4, 3), classes(4, count=3, low=0), drawn(3, low=0.5))])


def test_normalizations() -> None:
    shapes = [(), (0,), (3,), (5, 64), (5, 65), (3, 1024), (3, 1025), (4, 3, 4), (2, 0)]
    for shape, axis, epsilon in portion([*product(shapes, (-1, 0, (0, 1)), (None, 0.5))], 2):
        x = drawn(*shape)
        if not shape or (axis == (0, 1) and len(shape) < 2):
            continue
        row = drawn(*shape[-1:], low=0.5)
        for weights in ((), (row,), (row, -row), (None, row), (drawn(1),), (row.astype(np.float16),)):
            if axis == 0 and weights and len(shape) > 1:
                continue
            checked(
                lambda x, *w, a=axis, e=epsilon: ops.layer_normalization(x, *w, axis=a, epsilon=e),
                [(x, *weights)],
                32.0,
            )
            if len(weights) < 2:
                checked(
                    lambda x, *w, a=axis, e=epsilon: ops.rms_normalization(x, *w, axis=a, epsilon=e),
                    [(x, *weights)],
                    32.0,
                )
        checked(partial(ops.layer_normalization, axis=axis, rms_scaling=True), [(x,)], 32.0)
    for op in (ops.layer_normalization, ops.rms_normalization):
        checked(op, [(drawn(3, 64),), (drawn(3, 1025),)], 16.0, False, KINDS[1:])


def test_attention() -> None:
    for queries, keys, heads, size in [(3, 4, 2, 5), (1, 1024, 1, 2), (2, 1025, 1, 2), (0, 3, 1, 2), (3, 3, 1, 1)]:
        q, k, v = (
            drawn(2, queries, heads, size),
            drawn(2, keys, heads, size),
            drawn(2, keys, heads, size) + np.float32(0.5),
        )
        bias, mask = drawn(1, heads, queries, keys), np.arange(queries * keys).reshape(1, 1, queries, keys) % 3 < 2
        extras: list[Any] = [{}, {"dropout_rate": 0.0}, {"attn_logits_soft_cap": 2.0}]
        for scale, causal, extra in portion([*product((None, 0.7, 1), (False, True), extras)], 2):
            call = partial(ops.dot_product_attention, scale=scale, is_causal=causal, **extra)
            checked(call, [(q, k, v)], 32.0)
            checked(lambda q, k, v, b, c=call: c(q, k, v, b), [(q, k, v, bias)], 32.0)
            for seen in (mask, mask.astype("int32"), np.zeros_like(mask)):
                if queries and not extra:
                    checked(lambda q, k, v, c=call, m=seen: c(q, k, v, None, m), [(q, k, v)], 32.0)
                    checked(lambda q, k, v, b, c=call, m=seen: c(q, k, v, b, m), [(q, k, v, bias)], 32.0)
    checked(ops.dot_product_attention, [[drawn(1, 3, 2, 4)] * 3], 16.0, False, KINDS[1:])
    for shape, kind in product([(2, 3, 4), (1, 300, 2, 6), (0, 3, 2), (2, 3, 0)], ["float32", "float64", "float16"]):
        for options in (
            {},
            {"offset": 3},
            {"offset": 1000},
            {"scale": 0.5},
            {"base": 100.0},
            {"traditional": True},
            {"dims": 2},
            {"axis": -2},
        ):
            checked(partial(ops.rope, **options), [(drawn(*shape),)], 16.0, kind == "float32", [kind])


def test_products() -> None:
    shapes = [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((2, 3), (3, 2)),
        ((2, 0), (0, 3)),
        ((0, 3), (3, 2)),
        ((2, 3), (2, 3)),
        ((), (3,)),
    ]
    shapes += [((4, n), (n, 5)) for n in (256, 1024, 1025, 1056, 2048, 2053, 1031)] + [
        ((2, 4, 1056), (1056, 4)),
        ((1, 2048), (2048, 3)),
        ((2, 2048), (2048,)),
    ]
    shapes += [
        ((3, 2048), (2048, 3)),
        ((4, 2048), (2048, 4)),
        ((2, 1, 4, 1088), (3, 1088, 4)),
        ((40, 1056), (1056, 40)),
    ]
    cases = [(drawn(*a, low=0.5), drawn(*b, low=0.5)) for a, b in shapes]
    checked(ops.matmul, cases, 12.0)
    checked(ops.matmul, cases[::2], 24.0, False, KINDS[1:])
    checked(ops.outer, [*cases[:2], (drawn(2, 3), drawn(0))])
    checked(ops.kron, cases[:4])
    checked(
        partial(ops.einsum, "ij,kj->ik"),
        [(drawn(2, n, low=0.5), drawn(3, n, low=0.5)) for n in (0, 3, 1024, 1025, 3000)],
        12.0,
    )
    checked(
        partial(ops.einsum, "ij,kj->ik"),
        [(drawn(2, n, low=0.5), drawn(3, n, low=0.5)) for n in (3, 3000)],
        24.0,
        False,
        KINDS[1:],
    )
    for kind in ("int8", "int32", "int64", "uint64", "bool"):
        top = 2 if kind == "bool" else np.iinfo(kind).max // 2
        for n in (3, 2100):
            x, y = (np.random.default_rng(n).integers(0, top, shape).astype(kind) for shape in ((2, n), (n, 3)))
            checked(ops.matmul, [(x, y)])
            checked(partial(ops.einsum, "ij,jk->k"), [(x, y)])
            checked(partial(ops.einsum, "ij,jk,j->k"), [(x, y, y[:, 0])])


def test_linear() -> None:
    for shape, outputs, bias, transposed in product(
        [(3,), (2, 3), (0, 3), (1, 1024), (2, 3, 4), (1025,), (1, 1032), (1, 1, 2048), (2, 2048), (1, 1025)],
        (1, 3, 200),
        (False, True),
        (False, True),
    ):
        w = drawn(outputs, shape[-1], low=0.5) if transposed else drawn(shape[-1], outputs, low=0.5)
        case = [drawn(*shape, low=0.5), w, *([drawn(outputs)] if bias else [])]
        checked(lambda x, w, b=None, t=transposed: ops.linear(x, w, b, t), [case], 12.0)
        if outputs == 3 and shape[-1] < 1100:
            for place in range(len(case)):
                mixed = [x.astype("float16") if i == place else x for i, x in enumerate(case)]
                checked(lambda x, w, b=None, t=transposed: ops.linear(x, w, b, t), [mixed], 12.0)
    checked(
        lambda x, w: ops.linear(x, w, None, True),
        [(drawn(3), drawn(2, 4)), (drawn(2, 3), drawn(3)), (drawn(), drawn(2, 1))],
    )


def test_pooling() -> None:
    for shape, size in product(
        [(1, 4, 4, 1), (2, 5, 3), (1, 64, 64, 2), (1, 66, 66, 3), (0, 4, 4, 1), (1, 4, 4, 4, 2), (1, 9, 2)], (1, 2, 3)
    ):
        for options in (
            {},
            {"strides": 1},
            {"padding": "same"},
            {"ceil_mode": True},
            {"strides": size},
            {"data_format": "channels_first"},
        ):
            smooth = (size == 2 or not options) and 0 not in shape
            checked(partial(ops.max_pool, pool_size=size, **options), [(drawn(*shape),)], 1.0, smooth)
    checked(partial(ops.max_pool, pool_size=2), [(drawn(1, 4, 4, 1),), (drawn(1, 64, 64, 2),)], 1.0, False, KINDS[1:])
    ties = np.array([1, 1, 1, 2, 1, 2, 0, 0], np.float32).reshape(1, 4, 2, 1)
    checked(partial(ops.max_pool, pool_size=2), [(ties,), (np.tile(ties, (1, 32, 64, 2)),)])


def test_reading() -> None:
    x = drawn(4, 3, 2)
    for where in (
        0,
        -1,
        3,
        4,
        -5,
        [0, -1],
        [4],
        np.array([1, 0]),
        np.array([], int),
        np.array([[1], [-4]]),
        np.array([True, False]),
        1.5,
    ):
        for axis in (None, 0, 1, -1, 3):
            if where == 1.5 if where.__class__ is float else axis == 3:
                continue
            hosted = not isinstance(where, np.ndarray)
            inputs = [(x,), (drawn(4, 0, 2),), (drawn(0),)] if hosted else [(x,)] if axis in (None, 0) else []
            checked(lambda x, w=where, a=axis: ops.take(x, given_key(w), a), inputs)
    for key in (
        0,
        -1,
        slice(None, None, -1),
        ...,
        None,
        True,
        False,
        (slice(1, 99), 0),
        (..., None, -1),
        [0, 2],
        (0, [1, 1]),
        (slice(None), True),
        slice(5, 2),
    ):
        checked(lambda x, k=key: ops.get_item(x, k), [(x,)])
    for key in (
        np.array([1, -1]),
        np.array([[0], [1]]),
        x[:, :, 0] > 0,
        x > 9,
        np.array(True),
        np.array(2, "uint8"),
        (slice(None), np.array([0, 2])),
        (np.array([0, 1]), slice(0, 2), np.array([1, 0])),
    ):
        checked(lambda x, k=key: ops.get_item(x, given_key(k)), [(x,)])
    checked(lambda x: ops.take_along_axis(x, ops.convert_to_tensor(np.array([[[0, 1]]])), 0), [(x,)])
    checked(lambda x: ops.take_along_axis(x, ops.convert_to_tensor(np.array([5, 0])), None), [(x,)])
    for offset, axes in product((0, 1, -5), ((0, 1), (1, 2), (-1, 0))):
        checked(lambda x, o=offset, a=axes: ops.diagonal(x, o, *a), [(x,)])
    for n, k, m in product((0, 1, 3), (0, 1, -2, 9), (None, 4)):
        for op in (ops.tril_indices, ops.triu_indices, ops.eye):
            checked(
                lambda x, o=op, n=n, k=k, m=m: o(n, k=k, m=m) if o is not ops.eye else o(n, m, k),
                [(x,)],
                gradients=False,
            )
    for index, shape in product(
        (np.array([0, 5]), [0, 5], [[7, 1]], [99], np.array([], int)), ((4, 3), (12,), (2, 2, 3))
    ):
        checked(lambda x, i=index, s=shape: ops.unravel_index(given_key(i), s), [(x,)], gradients=False)
    for labels, count, axis in product(
        (np.array([0, 2]), np.array([[1, -1]]), np.array(1), np.array([], int)), (0, 3), (-1, 0)
    ):
        checked(lambda x, t=labels, c=count, a=axis: ops.one_hot(given_key(t), c, a), [(x,)], gradients=False)
    checked(lambda x: ops.one_hot(given_key(np.array([0, 2])), 3, dtype="int8"), [(x,)])
    checked(lambda x: ops.nonzero(x), [(x,), (drawn(),), (drawn(0),)], gradients=False)
    for key, size in (((1, 0, 0), (2, 2, 1)), ((0, 0, 1), (4, 3, 1)), ((3, 0, 0), (2, 1, 1))):
        checked(lambda x, k=key, s=size: ops.slice(x, k, s), [(x,)])
        checked(lambda x, y, k=key: ops.slice_update(x, k, y), [(x, drawn(*size))])


def given_key(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(map(given_key, key))
    return ops.convert_to_tensor(key) if isinstance(key, np.ndarray) else key


MODES = ["set", "add", "multiply", "min", "max"]


@pytest.mark.parametrize("mode", MODES)
def test_writing(mode: str) -> None:
    for shape in [(5,), (5, 3), (0,), (2, 0), (130, 80), (64, 4100), ()]:
        x = drawn(*shape, low=0.5)
        for key in (
            np.array([1, 0]),
            np.array([[1], [-1]]),
            np.array([], int),
            0,
            slice(0, 2),
            None,
            (None, 0),
            [0, 1],
            np.array([True, False, True, False, True]),
        ):
            try:
                target = x[key]
            except IndexError:
                continue
            smooth = x.size < 100 and mode in ("set", "add", "multiply")
            for value in [drawn(*target.shape), drawn(*target.shape[-1:]), drawn(), drawn(1, *target.shape), drawn(7)]:
                if x.size > 1000 and value.size < 2:
                    continue
                checked(lambda x, v, k=key: ops.set_item(x, given_key(k), v, mode), [(x, value)], gradients=smooth)
    shapes = [(5,), (5, 3), (3, 5, 2), (40, 4100), (3, 0)]
    places = [(2,), (2, 3), (5, 2), (2, 5, 2), (3, 4, 2), (1, 4100), (40, 3), (3, 0)]
    for shape, at, axis in portion([*product(shapes, places, (0, 1, -1, None))], 2):
        x, where = drawn(*shape, low=0.5), np.arange(np.prod(at)).reshape(at) % 2 - (len(at) > 1)
        if not x.size or (axis is None and 4100 in at):
            continue  # the indices are out of bounds, which NumPy looks at
        smooth = x.size < 100 and mode in ("set", "add", "multiply") and 4100 not in at
        for value in (drawn(*at), drawn(), drawn(9, 9)):
            if 4100 in at and (shape, axis) != ((40, 4100), 0):
                continue
            checked(
                lambda x, v, a=axis, w=where: ops.put_along_axis(x, given_key(w), v, a, mode),
                [(x, value)],
                gradients=smooth and value.size > 1,
            )


def test_comparisons() -> None:
    x = drawn(2, 3)
    ends = np.array([nan, inf, -inf, 1.0, 1e-9, 0.0], np.float32)
    near = np.array([nan, inf, 3e38, 1.000001, 0.0, -0.0], np.float32)
    pairs = [
        (x, x),
        (x, x + np.float32(1e-6)),
        (ends, near),
        (ends, near[::-1].copy()),
        (drawn(0), drawn(0)),
        (x, drawn(3)),
    ]
    pairs += [(np.arange(3), np.array([0, 1, 3])), (np.array([2**24, 2**24 + 1]), np.array([2**24 + 1] * 2))]
    pairs += [(np.array([True, False]), np.array([1, 1])), (drawn(), drawn(1))]
    pairs += [(np.array([1, 9], "uint8"), np.array([2, 0], "uint8"))]
    numbers = np.array([1, inf * 1j, complex(nan, 1), 2 + 1e-7j], np.complex64)
    pairs += [(numbers, numbers), (numbers, np.array([inf * 1j, 1, complex(nan, 1), 2], np.complex64))]
    for options in ({}, {"equal_nan": True}, {"rtol": 0.5}, {"atol": 1.0}, {"rtol": 0, "atol": 0}):
        checked(partial(ops.isclose, **options), pairs, kinds=("float32", "float64"))
        checked(partial(ops.allclose, **options), pairs)
    for names in (("rtol",), ("atol",), ("rtol", "atol")):
        tolerances = {name: np.float32(1e-3) * np.ones(3, np.float32) for name in names}
        checked(
            lambda x, y, t=tolerances: ops.isclose(x, y, **{n: ops.convert_to_tensor(v) for n, v in t.items()}),
            [(x, x)],
        )
    for equal_nan in (False, True):
        checked(partial(ops.array_equal, equal_nan=equal_nan), pairs)
    for name in ("real", "imag", "conj", "isfinite", "sign", "absolute"):
        checked(
            getattr(ops, name), [(x,), (numbers[[0, 3]],), (np.arange(3),), (drawn(0),)], kinds=KINDS, gradients=False
        )
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        checked(
            getattr(ops, name), [(np.array([5, 6]), np.array([3])), (np.array([True, False]), np.array([True])), (x, x)]
        )
    checked(ops.bitwise_not, [(np.array([5, 6]),), (np.array([True, False]),), (np.array([5], "uint8"),), (x,)])


def test_options_that_are_tensors() -> None:
    for op in (ops.leaky_relu, ops.elu, ops.clip):
        checked(op, [(drawn(2, 3), drawn(3)), (drawn(2, 3), drawn(2, 1))])


def test_few_segments_are_added_without_a_check_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments_ops, "_general_sum", lambda *arguments: pytest.fail("the general way was taken"))
    with ops.use_backend("mlx"):
        data = ops.asarray([[1.0], [2.0], [4.0]])
        assert ops.segment_sum(data, ops.asarray([0, 1, 0]), 2).tolist() == [[5.0], [2.0]]
