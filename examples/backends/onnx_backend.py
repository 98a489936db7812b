"""ONNX as a backend: functions, networks and their gradients become ONNX models.

ndonnx (https://github.com/Quantco/ndonnx) is a library of the array API standard, whose arrays are either values,
which ONNX Runtime computes, or places in an ONNX graph. So one call makes a backend of it, and a function that runs on
the second kind of arrays writes the graph: the ops, and those of the tape that differentiates them.
"""

from collections.abc import Callable
from typing import Any

import ndonnx as ndx
import numpy as np
import onnxruntime

from emberharmony import nn, ops
from emberharmony.backend import from_array_api
from emberharmony.errors import TracedTensorError


def to_numpy(x: ndx.Array) -> np.ndarray:
    """Returns the values of an array; `np.asarray` makes an array of objects."""
    try:
        return np.asarray(x.unwrap_numpy())
    except ValueError as error:
        raise TracedTensorError("a value is read, but an array in an ONNX graph has none") from error


BACKEND = from_array_api("onnx", ndx, tensor_type=ndx.Array, extras={"to_numpy": to_numpy})


def export(function: Callable[..., Any], *inputs: np.ndarray) -> Any:
    """Returns the ONNX model of a function of tensors, with the inputs `x0`, `x1`, … and the outputs `y0`, `y1`, ….

    Args:
        function: takes tensors of any backend and returns one, or several in a tuple or list.
        inputs: arrays of the shapes and dtypes that the model takes; their values do not count.
    """
    places = {f"x{i}": ndx.argument(shape=x.shape, dtype=ndx.from_numpy_dtype(x.dtype)) for i, x in enumerate(inputs)}
    with ops.use_backend(BACKEND):
        results = function(*places.values())
    several = results if isinstance(results, (tuple, list)) else [results]
    return ndx.build(places, {f"y{i}": y for i, y in enumerate(several)})


def run(model: Any, *inputs: np.ndarray) -> list[np.ndarray]:
    """Returns the outputs of an ONNX model, as ONNX Runtime computes them."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found: list[np.ndarray] = session.run(None, {f"x{i}": x for i, x in enumerate(inputs)})
    return found


if __name__ == "__main__":
    ops.set_backend("numpy")
    rng = nn.Rngs(0)
    network = nn.Sequential(nn.Linear(4, 16, rng=rng), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3, rng=rng))

    def loss_and_slope(x: Any) -> Any:
        """Returns the loss of the network, and its gradient by the inputs."""
        return ops.value_and_grad(lambda x: ops.mean(ops.square(ops.softmax(network(x)))))(x)

    x = np.random.default_rng(0).standard_normal((8, 4)).astype("float32")
    for function in (network, loss_and_slope):
        model = export(function, x)
        wanted = ops.tree_leaves(function(ops.asarray(x)))
        apart = max(float(np.abs(y - ops.to_numpy(w)).max()) for y, w in zip(run(model, x), wanted, strict=True))
        print(f"{len(model.graph.node)} nodes, at most {apart:.0e} from the values on NumPy")
