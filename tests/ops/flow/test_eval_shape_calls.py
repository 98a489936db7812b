"""`ops.eval_shape` gives the shapes and dtypes of a real call, or its error, for the rare options of each rule."""

from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.errors import EmberError
from tests.together import together

X = np.arange(12.0, dtype=np.float32).reshape(3, 4)
IDS = np.array([2, 0])

CALLS: dict[str, Callable[[Any], Any]] = {
    "vander of a matrix": lambda x: ops.vander(x),
    "vander": lambda x: ops.vander(x[0], 3),
    "indices that are floats": lambda x: ops.take(x, x, 0),
    "indices of too few axes": lambda x: ops.take_along_axis(x, IDS),
    "boolean key": lambda x: ops.get_item(x, True),
    "nonzero without axes": lambda x: ops.nonzero(x[0, 0]),
    "nonzero of values": lambda x: ops.nonzero(ops.asarray([1, 0, 3])),
    "slice at a tensor": lambda x: ops.slice(x, ops.asarray([1, 2]), (2, 1)),
    "updates that do not fit": lambda x: ops.scatter_update(x, IDS[:, None], ops.ones((3, 4))),
    "singular values alone": lambda x: ops.svd(x, compute_uv=False),
    "ellipsis that is left out": lambda x: ops.einsum("...i->i", x),
    "cond of a known value": lambda x: ops.cond(True, lambda: x, lambda: x[0]),
    "switch of a known value": lambda x: ops.switch(1, [lambda: x, lambda: x[0]]),
    "loop of known values": lambda x: ops.while_loop(lambda i: i < 3, lambda i: i + 1, 0),
    "scan of a length": lambda x: ops.scan(lambda c, _: (c, c), x, length=5),
    "scan of one step": lambda x: ops.scan(lambda c, y: (c, y), x, x[:1]),
    "map of one row": lambda x: ops.map(lambda y: y[0], x[:1]),
    "transform of no length": lambda x: ops.fftfreq(0),
    "permutation of a number": lambda x: ops.random.permutation(5),
    "permutation of a tensor": lambda x: ops.random.permutation(x, 1),
    "choice of numbers": lambda x: ops.random.choice(5, (2, 3)),
    "choice of rows": lambda x: ops.random.choice(x, (2,)),
    "choice by probabilities": lambda x: ops.random.choice(3, (2,), p=[0.5, 0.25, 0.25]),
    "probabilities that do not fit": lambda x: ops.random.choice(3, (2,), p=[0.5, 0.5]),
    "choice of too many": lambda x: ops.random.choice(3, (4,), replace=False),
    "choice of nothing": lambda x: ops.random.choice(x[:0], (4,)),
    "paths of a beam": lambda x: ops.ctc_decode(x[None], [3], "beam_search", 2, 3),
    "least of complex": lambda x: ops.set_item(ops.cast(x, "complex64"), 0, 1.0, "min"),
    "call of the host": lambda x: ops.host_call(lambda y: y, ops.asarray([1.0])),
    "sorter that does not fit": lambda x: ops.searchsorted(x[0], x, sorter=ops.asarray([0, 1])),
    "count of values": lambda x: ops.bincount(ops.asarray([1, 4])),
    "no bins": lambda x: ops.histogram(x, 0),
    "elements of a number": lambda x: ops.unique(x, size=5),
    "columns of a number": lambda x: ops.unique(x, return_inverse=True, axis=1, size=2),
    "range beyond its dtype": lambda x: ops.arange(0, 300, 1, "int8"),
    "range beyond float64": lambda x: ops.arange(0, 2**60 + 1, 2**58),
    "range of fractions beyond its dtype": lambda x: ops.arange(0.5, 300.0, 1.0, "int8"),
    "axes without places": lambda x: ops.moveaxis(x, (0, 1), (0,)),
    "shape that does not fit": lambda x: ops.broadcast_to(x, (3, 5)),
    "shape of fewer axes": lambda x: ops.broadcast_to(x, (4,)),
    "parts that do not fit": lambda x: ops.unstack(x, 4),
    "padding of nothing": lambda x: ops.pad(x[:0], 1, "edge"),
    "parts of no complex number": lambda x: ops.view_as_complex(x),
    "parts of a complex number": lambda x: ops.view_as_complex(x[:, :2]),
    "array of another library": lambda x: ops.from_dlpack(np.ones(3, np.float32)),
    "is a tensor": lambda x: ops.ones(2) if ops.is_tensor(x) else x,
    "cast to another dtype": lambda x: ops.convert_to_tensor(x, "int32", copy=True),
    "random numbers": lambda x: ops.random.uniform((2, 3)),
}


def outcome(call: Callable[[Any], Any], of_shapes: bool) -> Any:
    """Returns the shapes and dtypes of the results, or the class of the error."""
    x = ops.convert_to_tensor(X)
    try:
        result = ops.eval_shape(call, x) if of_shapes else call(x)
    except EmberError as error:
        return type(error)
    leaves = ops.tree_leaves(result) if of_shapes else map(ops.convert_to_tensor, ops.tree_leaves(result))
    return [(tuple(x.shape), str(x.dtype if of_shapes else ops.dtype(x))) for x in leaves]


@together("name", CALLS)
def test_the_shapes_and_the_errors_are_those_of_a_real_call(name: str, backend: str) -> None:
    assert outcome(CALLS[name], of_shapes=True) == outcome(CALLS[name], of_shapes=False)
