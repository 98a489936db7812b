"""Right calls: a type checker must not report any of them. The file is never run."""

from typing import Any

import mlx.core as mx
import numpy as np
import torch

from emberharmony import Buffer, Parameter, Tensor, TensorLike, create_backend, ops, optim, to_backend
from emberharmony.backend import TensorBackend
from emberharmony.types import BackendName, HostArray


def standardized(x: Tensor) -> Tensor:
    return ops.divide(ops.subtract(x, ops.mean(x, axis=0)), ops.maximum(ops.std(x, axis=0), 1e-6))


class Point:
    def __init__(self, x: float) -> None:
        self.x = x


def doubled(x: TensorLike) -> Tensor:
    return ops.multiply(x, 2)


def scale_by(gain: Parameter, x: Tensor) -> Tensor:
    return gain * x


def shift(x: Tensor) -> Tensor:
    result: Tensor = x + 1.0
    return result


standardized(np.ones((2, 3)))
standardized(torch.ones(2, 3))
standardized(mx.ones((2, 3)))
doubled([[1, 2], [3, 4]])
doubled(((1.0, 2.0), (3.0, 4.0)))
doubled(np.float32(2))
doubled(True)
ops.add(range(3), 1j)
ops.floor(2)
ops.floor(np.float32(2.5))
ops.less([1, 2], 2.5)
ops.maximum(np.ones(3), True)
ops.equal(np.ones(3), 1j)
ops.gcd(np.ones(3, int), 2)
ops.bitwise_and([True, False], np.bool_(True))
ops.bitwise_xor(torch.ones(3, dtype=torch.bool), True)
ops.concatenate([np.ones(2), [1.0, 2.0]], axis=-1)
ops.einsum("ij,jk->ik", [[1.0]], np.ones((1, 1)))
for dtype in ("float32", "bfloat16"):
    ops.zeros((2, 3), dtype="int8")
ops.zeros(3, dtype=ops.float64)
ops.zeros([2, 3], dtype=np.float32)
ops.zeros((2, 3), dtype=np.dtype("int16"))
ops.zeros((2, 3), dtype=torch.bfloat16)
ops.zeros((2, 3), dtype=mx.float16)
ops.zeros((2, 3), dtype=int)
ops.sum(np.ones(3), (0,), keepdims=True)
ops.sum(ops.ones((2, 3)), axis=None, dtype="float64")
array: np.ndarray[Any, Any] = ops.to_numpy(ops.ones(3))
shape: tuple[int, ...] = ops.ones((2, 3)).shape
length: int = ops.ones((2, 3)).ndim
u, s, vh = ops.svd(ops.ones((2, 2)))
values: Tensor = ops.linalg.svd(ops.ones((2, 2))).S
ops.random.normal((2, 3), generator=ops.random.Generator(0))
ops.nn.relu(ops.where(ops.greater(u, 0.0), u, 0.0))
ops.value_and_grad(lambda w: ops.sum(ops.square(w)))([1.0, 2.0])
parts: list[Tensor] = list(ops.split(ops.arange(6), 3))
ops.get_item(s, (slice(0, 2), None))
ops.fft.fft(ops.ones(4), norm="ortho")
product = u @ vh + 1.0
ops.set_backend("numpy")
with ops.use_backend("torch"), ops.device("cpu"):
    ops.stack([1.0, 2.0])
backend: TensorBackend = create_backend("numpy")
backend.add(np.ones(2), 1)
for name in ops.available_backends():
    ops.set_backend(name)
ops.set_backend(ops.get_backend())
ops.set_backend(BackendName("strict"))
with ops.use_backend("mlx"), ops.use_backend(create_backend("torch", fallback=None)), ops.use_backend(like=u):
    ops.set_default_float(torch.float64)
host: HostArray = ops.to_numpy(u)
host.sort()
single = torch.ones(2) + 1
standardized(single)
ops.set_default_float("float64")
eps: float = ops.finfo("float32").eps
least: int = ops.iinfo(np.int8).min + ops.iinfo(ops.arange(3)).bits
ops.finfo(torch.bfloat16).smallest_normal
ops.finfo(np.ones(3)).dtype == ops.float64
ops.zeros(3, device="cpu")
ops.to_device(single, torch.device("cpu"))
ops.set_default_device(None)
with ops.device(torch.device("cpu")), ops.device(mx.Device(mx.cpu)):
    place: str = ops.get_device(u)
with ops.use_backend("numpy") as active:
    active.sin(active.zeros(3, device="cpu"))
ops.set_default_float(np.float32)
ops.conv(ops.ones((1, 4, 4, 1)), ops.ones((2, 2, 1, 1)), padding="same", data_format=None)
weight, mean = Parameter([1.0, 2.0], name="w"), Buffer(0.0, persistent=False)
ops.add(weight, ops.concatenate([weight, mean.value]))
half: Parameter = weight.to("float16")
kept: bool = mean.persistent and not weight.trainable
moved: dict[str, Parameter] = to_backend({"w": weight}, "torch")
to_backend(mean, create_backend("numpy"))
ops.register_node(Point, lambda point: ((point.x,), None), lambda static, children: Point(*children))
texts: list[str] = [str(path) for path in ops.tree_paths({"w": [1.0]})]
keys: list[tuple[Any, ...]] = list(ops.tree_paths([1.0]))
leaf_by_path: dict[tuple[Any, ...], Any] = dict(ops.tree_flatten_with_path([1.0])[0])
renamed = ops.tree_map_with_path(lambda path, leaf: leaf, [1.0], is_leaf=None)
streams: dict[str, Any] = ops.random.get_state()
ops.random.set_state(streams)
ops.random.Generator(0).load_state_dict(ops.random.Generator(1).state_dict())
optimizer: optim.Optimizer = optim.AdamW([weight], lr=optim.schedules.cosine(0.1, T_max=10), betas=(0.9, 0.99))
optimizer.step()
optimizer.step({weight: np.ones(1)}, clear=False)
optim.SGD([{"params": weight, "lr": 0.1}], momentum=0.9).load_state_dict(optimizer.state_dict(host=True))
new_params, new_state = optim.Adam(lr=0.1).update([np.ones(1)], optim.Adam().init([np.ones(1)]), [np.ones(1)])
rates: list[float] = optimizer.learning_rates()
with ops.checked("nan", policy="record") as findings:
    first_op: list[str] = [finding.op for finding in findings]
with ops.checked(), ops.checked(False), ops.checked("bounds"):
    ops.take([1, 2], [0])
