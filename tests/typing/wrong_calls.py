"""Wrong calls, one per line: a type checker reports each line that ends in `# wrong`. The file is never run."""

from emberharmony import Buffer, Parameter, create_backend, ops, optim, to_backend
from emberharmony.types import Tensor


def f(t: Tensor) -> None: ...


a = ops.ones((2, 3))
b = ops.ones((3, 2))
ops.concatenate(a, b)  # wrong
ops.concatenate([a, b], "0")  # wrong
ops.einsum("ij,jk->ik", a, "b")  # wrong
ops.zeros((2, 2), dtype="flaot32")  # wrong
ops.zeros("ab")  # wrong
ops.sum(a, axis="rows")  # wrong
ops.sum(a, dim=0)  # wrong
ops.summ(a)  # wrong
ops.add(a)  # wrong
ops.add(a, b, a)  # wrong
ops.add("a", a)  # wrong
ops.matmul(a, None)  # wrong
ops.floor(1j)  # wrong
ops.less(a, 2j)  # wrong
ops.nn.selu(1j)  # wrong
ops.fmod(1j, a)  # wrong
ops.gcd(a, 1.5)  # wrong
ops.bitwise_left_shift(a, 2.0)  # wrong
ops.bitwise_not(0.5)  # wrong
ops.logical_xor(a, "b")  # wrong
ops.reshape(a, "2,3")  # wrong
ops.reshape(a)  # wrong
ops.cast(a, "flota16")  # wrong
ops.transpose(a, axes="ij")  # wrong
ops.softmax(a, axis="last")  # wrong
ops.svd(a).W  # wrong
ops.where(a > 0, a)  # wrong
ops.one_hot([0, 1])  # wrong
ops.random.normal((2,), dtype="double64")  # wrong
ops.random.normal((2,), men=0.0)  # wrong
ops.nn.relu(a, 1, 2)  # wrong
ops.linalg.detr(a)  # wrong
ops.fft.fft(a, norm="unit")  # wrong
ops.grad(3)  # wrong
ops.set_backend(3)  # wrong
ops.to_numpy(a).foo()  # wrong
ops.stack(1.0)  # wrong
x: int = ops.sin(1.0)  # wrong
y: str = ops.shape(a)  # wrong
f("a")  # wrong
ops.split(a, "2")  # wrong
a.shpe  # wrong
ops.sin(a).unsqueeze(0)  # wrong
ops.set_backend("tensorflow")  # wrong
ops.use_backend("tensorflow")  # wrong
create_backend("tensroflow")  # wrong
ops.tensor([1.0])  # wrong
ops.choice([1, 2])  # wrong
ops.randn(2)  # wrong
ops.clip(a, max_value=1)  # wrong
ops.set_default_float("flota32")  # wrong
ops.image.resize(a, (2, 2), interpolation="bilnear")  # wrong
ops.conv(a, b, padding="smae")  # wrong
ops.max_pool(a, 2, data_format="channel_last")  # wrong
ops.image.map_coordinates(a, b, 1, fill_mode="constnat")  # wrong
ops.pad(a, 1, mode="reflct")  # wrong
ops.get_backend().foo  # wrong
ops.finfo("flota32")  # wrong
ops.finfo("float32").epsilon  # wrong
eps: str = ops.finfo("float32").eps  # wrong
ops.iinfo(8)  # wrong
ops.iinfo("int8").maximum  # wrong
ops.device(0)  # wrong
ops.device("cpu").nmae  # wrong
ops.zeros(3, device=0)  # wrong
ops.get_device(a).indx  # wrong
ops.use_backend("numpy").__enter__().summ  # wrong
to_backend([1.0], "tensorflow")  # wrong
Parameter([1.0], persistent=False)  # wrong
Buffer([1.0], trainable=True)  # wrong
optim.Adam(foo=3)  # wrong
optim.Adam(lr="fast")  # wrong
optim.Adam(None, 1e-3, (0.9, 0.99), 1e-8, 0.0, False, True)  # wrong
optim.Adam().betas  # wrong
optim.AdamW(decoupled_weight_decay=True)  # wrong
optim.LBFGS()  # wrong
