"""A parameter goes wherever a tensor goes: operators, conversions, functions of libraries, in every transform."""

import copy
import importlib
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import Buffer, Parameter, errors, nn, ops, optim
from emberharmony.core.cells.cell import Cell

HOST = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
EXPRESSIONS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "p * x": (lambda p, x: p * x, lambda p, x: ops.multiply(p, x)),
    "x * p": (lambda p, x: x * p, lambda p, x: ops.multiply(x, p)),
    "p @ x": (lambda p, x: p @ x, lambda p, x: ops.matmul(p, x)),
    "x @ p": (lambda p, x: x @ p, lambda p, x: ops.matmul(x, p)),
    "x + 2 * p": (lambda p, x: x + 2 * p, lambda p, x: ops.add(x, ops.multiply(2, p))),
    "x - p": (lambda p, x: x - p, lambda p, x: ops.subtract(x, p)),
    "p / x": (lambda p, x: p / x, lambda p, x: ops.divide(p, x)),
    "x / p": (lambda p, x: x / p, lambda p, x: ops.divide(x, p)),
    "p ** 2": (lambda p, x: p**2, lambda p, x: ops.power(p, 2)),
    "x ** p": (lambda p, x: x**p, lambda p, x: ops.power(x, p)),
    "-p": (lambda p, x: -p, lambda p, x: ops.negative(p)),
    "abs(+p)": (lambda p, x: abs(+p), lambda p, x: ops.absolute(p)),
    "p[0] * x": (lambda p, x: p[0] * x, lambda p, x: ops.multiply(ops.get_item(p, 0), x)),
    "p > x": (lambda p, x: ops.where(p > x, p, x), lambda p, x: ops.maximum(p, x)),
    "x < p": (lambda p, x: ops.where(x < p, p, x), lambda p, x: ops.maximum(p, x)),
    "p.T + x": (lambda p, x: p.T + x, lambda p, x: ops.add(ops.transpose(p), x)),
    "p.sum(0)": (lambda p, x: p.sum(0), lambda p, x: ops.sum(p, 0)),
    "rows": (lambda p, x: sum(row * row for row in p), lambda p, x: ops.sum(ops.square(p), 0)),
    "[p, x]": (lambda p, x: ops.stack([p, x]), lambda p, x: ops.stack([p.value, x])),
}
"""Functions of a parameter and a tensor, each with the ops that it stands for."""


def expressions(backend: str) -> dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]]:
    """Returns those that the library of the backend lets us have."""
    return {name: pair for name, pair in EXPRESSIONS.items() if (backend, name) != ("mlx", "x @ p")}


def host(x: Any) -> np.ndarray:
    return np.asarray(ops.to_numpy(x))


def operands() -> tuple[Parameter, Any]:
    return Parameter(HOST), ops.asarray(HOST.T * 0.5 + 1)


def backward(f: Callable[[Any, Any], Any]) -> list[Any]:
    p, x = operands()
    return [ops.backward(lambda: ops.sum(ops.square(f(p, x))), p), p.grad]


def compiled(f: Callable[[Any, Any], Any]) -> list[Any]:
    p, x = operands()
    step = ops.compile(lambda x: ops.backward(lambda: ops.sum(ops.square(f(p, x))), p))
    return [step(x), p.grad]


def checked(f: Callable[[Any, Any], Any]) -> list[Any]:
    with ops.checked("nan"):
        return backward(f)


def of_tensor(f: Callable[[Any, Any], Any]) -> list[Any]:
    p, x = operands()
    return [ops.grad(lambda x: ops.sum(ops.square(f(p, x))) + ops.sum(x))(x)]


def mapped(f: Callable[[Any, Any], Any]) -> list[Any]:
    p, x = operands()
    return [ops.vmap(lambda x: f(p, x))(ops.stack([x, x + 1]))]


def plain(f: Callable[[Any, Any], Any]) -> list[Any]:
    return [f(*operands())]


@pytest.mark.parametrize("run", [plain, backward, compiled, checked, of_tensor, mapped])
def test_an_operator_is_the_op(quick: str, run: Callable[[Any], list[Any]]) -> None:
    wrong = []
    for name, (written, meant) in expressions(quick).items():
        if run is compiled and quick == "torch" and name not in ("x * p", "p @ x"):
            continue  # each takes PyTorch half a second
        found, wanted = run(written), run(meant)
        for got, expected in zip(map(host, found), map(host, wanted), strict=True):
            if got.dtype != expected.dtype or not np.allclose(got, expected, 1e-5):
                wrong.append((name, got, expected))
    assert not wrong


BINARY: list[Callable[[Any, Any], Any]] = [
    lambda x, p: x + p,
    lambda x, p: x - p,
    lambda x, p: x * p,
    lambda x, p: x / p,
    lambda x, p: x // p,
    lambda x, p: x**p,
    lambda x, p: ops.cast(x < p, "float32"),
    lambda x, p: ops.cast(x >= p, "float32"),
]


@pytest.mark.parametrize("cell", [lambda: Parameter(2.0), lambda: Parameter([2.0]), lambda: Buffer([[2.0]])])
def test_a_cell_of_one_element_is_an_array_to_an_operator(backend: str, cell: Callable[[], Any]) -> None:
    p, x = cell(), ops.asarray(HOST)
    for written in BINARY:
        found, wanted = host(written(x, p)), host(written(x, p.value))
        assert found.dtype == wanted.dtype == np.float32
        assert found.tolist() == wanted.tolist()
    one = Parameter(2.0)
    assert (float(one), complex(one), "%.1f" % one) == (2.0, 2 + 0j, "2.0")  # noqa: UP031 - an operator that reads a number


class Scaled(nn.Module):
    """A layer as a user of any of the libraries writes it."""

    def __init__(self) -> None:
        self.gain = Parameter(np.full(2, 0.5, np.float32))
        self.weight = Parameter(HOST / 4)
        self.shift = Parameter(np.zeros(2, np.float32))

    def __call__(self, x: Any) -> Any:
        if ops.get_backend() == "mlx":  # whose arrays refuse `x @ self.weight`
            return ops.matmul(x * self.gain + self.shift, self.weight)
        return (x * self.gain + self.shift) @ self.weight


@pytest.mark.parametrize("how", ["plain", "compile", "checked"])
def test_a_layer_with_operators_trains(quick: str, how: str) -> None:
    model = Scaled()
    optimizer = optim.SGD(model, 0.05)
    x, y = ops.asarray(HOST), ops.asarray(np.ones((2, 2), np.float32))

    def step(x: Any, y: Any) -> Any:
        return ops.backward(lambda: ops.mean(ops.square(model(x) - y)), model)

    run = ops.compile(step) if how == "compile" else step
    losses = []
    for _ in range(5):
        with ops.checked("nan" if how == "checked" else "none") if how == "checked" else ops.use_backend(quick):
            losses.append(float(host(run(x, y))))
            optimizer.step()
        optimizer.zero_grad()
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.5 * losses[0]
    assert all(float(host(abs(cell - type(model)().gain)).max()) > 0 for cell in [model.gain])


def test_facts_and_conversions(backend: str) -> None:
    p = Parameter(HOST)
    assert (p.shape, p.ndim, p.size, len(p), p.itemsize, p.nbytes) == ((2, 2), 2, 4, 2, 4, 16)
    assert p.dtype == p.value.dtype
    assert p.tolist() == HOST.tolist()
    assert [row.tolist() for row in map(host, p)] == HOST.tolist()
    one = Parameter(2.5)
    assert (float(one), int(one), complex(one), one.item()) == (2.5, 2, 2.5, 2.5)
    assert bool(one)
    assert not Buffer(0.0)
    assert ["a", "b", "c"][Buffer(np.array(1))] == "b"
    with pytest.raises((ValueError, RuntimeError)):
        bool(p)
    with pytest.raises(TypeError, match="a tensor without axes has no length"):
        len(one)
    with pytest.raises(errors.ArgumentTypeError, match=r"max\(\) of a parameter or buffer takes no axis"):
        p.max(0)


def test_an_array_of_the_values_is_read_only(backend: str) -> None:
    p = Parameter(HOST)
    for array in (np.asarray(p), np.array(p, copy=False)):
        assert array.tolist() == HOST.tolist()
        assert not array.flags.writeable
    copied = np.array(p)
    copied[0] = 9
    assert np.asarray(p, np.float64).dtype == np.float64
    assert np.array([p, p]).shape == (2, 2, 2)
    assert p.tolist() == HOST.tolist()


def test_cells_are_keys_and_none_is_never_equal(backend: str) -> None:
    p, q = Parameter(HOST), Parameter(HOST)
    assert host(p == q).all()
    assert not host(p != q).any()
    assert {p: 1, q: 2}[p] == 1
    assert len({p, q}) == 2
    assert (p == None, p != None) == (False, True)  # noqa: E711
    copies = [copy.deepcopy(p), copy.copy(p), pickle.loads(pickle.dumps(p))]
    assert all(each.tolist() == HOST.tolist() and each is not p for each in copies)
    assert repr(p) == "Parameter(shape=(2, 2), dtype=float32)"


def test_functions_of_numpy(backend: str) -> None:
    p = Parameter(HOST)
    assert np.allclose(host(np.exp(p)), np.exp(HOST))
    assert np.allclose(host(np.hypot(p, HOST)), np.hypot(HOST, HOST))
    assert float(np.sum(p)) == 10
    assert host(np.concatenate([p, HOST])).shape == (4, 2)
    assert np.allclose(host(HOST * p), HOST * HOST)
    assert np.allclose(host(HOST @ p), HOST @ HOST)
    assert host(np.ones((2, 2), np.int64) * p).dtype == np.float32


def test_functions_of_the_library(backend: str) -> None:
    p = Parameter(HOST)
    if backend == "torch":
        torch = importlib.import_module("torch")
        assert torch.equal(torch.sin(p), torch.sin(p.value))
        assert torch.equal(torch.nn.functional.linear(p, p), p.value @ p.value.T)
        assert torch.equal(torch.cat([p, p.value]), torch.cat([p.value, p.value]))
        for write in (torch.nn.init.uniform_, torch.relu_, lambda p: torch.add(1, p.value, out=p)):
            with pytest.raises(errors.ArgumentTypeError, match=r"in place, .*: assign x.value = the new tensor"):
                write(p)
    if backend == "mlx":
        mx = importlib.import_module("mlx.core")
        assert np.allclose(host(mx.exp(p)), np.exp(HOST), 1e-5)
        with pytest.raises(TypeError, match=r"__matmul__(?s:.*)emberharmony\.Parameter"):
            p.value @ p
        with pytest.raises(errors.TracedTensorError, match=r"refuses a .*parameter .*ops\.matmul\(a, x\) for a @ x"):
            ops.grad(lambda x: ops.sum(x @ p))(ops.ones((2, 2)))
    if backend == "jax":
        jax, jnp = importlib.import_module("jax"), importlib.import_module("jax.numpy")
        for found in (
            jnp.exp(p),
            jax.jit(jnp.exp)(p),
            jax.vmap(jnp.exp)(p),
            jax.jit(lambda x: jnp.exp(x * p) / x)(1.0),
        ):
            assert np.allclose(found, np.exp(HOST), 1e-5)
        assert jnp.concatenate([p, p]).shape == (4, 2)


@pytest.mark.parametrize(
    "reader",
    [float, int, bool, lambda p: p.item(), lambda p: p.tolist(), np.asarray, np.exp, np.sum],
    ids=["float", "int", "bool", "item", "tolist", "asarray", "exp", "sum"],
)
def test_no_gradient_is_lost_to_a_reader(backend: str, reader: Callable[[Any], Any]) -> None:
    p = Parameter(2.0)
    loss = lambda: ops.multiply(p, 3.0) + 0 * host(reader(p)).sum()
    if reader is bool:  # a function may branch on a value
        ops.backward(lambda: p * 3.0 if p else p, p)
        assert float(p.grad) == 3.0
        return
    with pytest.raises(errors.TracedTensorError, match=r"its gradient would be lost|is being differentiated"):
        ops.backward(loss, p)
    assert p.grad is None


def test_a_function_of_numpy_in_a_gradient_names_the_op(backend: str) -> None:
    p = Parameter(HOST)
    with pytest.raises(errors.TracedTensorError, match=r"numpy\.exp was applied .* use ops\.exp"):
        ops.backward(lambda: ops.sum(np.exp(p) * p), p)


def _augmented(p: Any) -> None:
    p += 1


@pytest.mark.parametrize(
    "write, way_out",
    [
        (_augmented, r"x\.value = x \+ y"),
        (lambda p: p.__setitem__(0, 1.0), r"x\.value = ops\.set_item\(x, key, value\)"),
        (lambda p: np.add(HOST, p, out=p), r"x\.value = ops\.add\(\.\.\.\)"),
        (lambda p: np.add.at(p, 0, 1.0), r"x\.value = ops\.add\(\.\.\.\)"),
        (lambda p: np.clip(HOST, 0, 1, out=p), r"x\.value = numpy\.clip\(\.\.\.\)"),
    ],
    ids=["+=", "[]", "out", "at", "clip"],
)
def test_writes_in_place_are_refused(backend: str, write: Callable[[Any], Any], way_out: str) -> None:
    p = Parameter(HOST)
    kept = p
    with pytest.raises(errors.ArgumentTypeError, match=rf"would change Parameter\(.*\) in place, .*: assign {way_out}"):
        write(p)
    assert p is kept
    assert p.tolist() == HOST.tolist()


def test_functions_of_numpy_that_write_are_refused() -> None:
    p = Parameter(HOST)
    with ops.use_backend("numpy"), pytest.raises(errors.ArgumentTypeError, match=r"numpy\.copyto would change"):
        np.copyto(p, 0.0)
    assert p.tolist() == HOST.tolist()


def test_a_parameter_follows_the_backend_whose_op_is_called(backend: str) -> None:
    p = Parameter(HOST)
    x = ops.asarray(HOST)
    with ops.use_backend("numpy"):
        assert type(ops.multiply(p, HOST)) is np.ndarray
        namespace = ops.array_namespace(x)
        found = [namespace.multiply(x, p), namespace.multiply(p, 2.0), namespace.sum(p)]
        assert type(p * 2.0) is np.ndarray
    assert all(type(each) is type(x) for each in found)
    assert host(found[0]).tolist() == (HOST * HOST).tolist()


def test_reading_an_attribute_of_a_cell_stays_fast() -> None:
    # `__getattr__` in a class makes CPython read each attribute of its objects by a slow path.
    assert not any("__getattr__" in vars(kind) or "__getattribute__" in vars(kind) for kind in Cell.__mro__[:-1])
    with pytest.raises(AttributeError, match="'Parameter' object has no attribute 'view'"):
        Parameter(HOST).view(2)  # type: ignore[attr-defined]


def test_torch_compile_never_takes_one_operator_for_another() -> None:
    torch = pytest.importorskip("torch")
    with ops.use_backend("torch"):
        p, x = Parameter(HOST), ops.asarray(HOST)

        def multiplied(x: Any) -> Any:
            for _ in range(1):
                torch._dynamo.graph_break()
                y = x * p
            return y

        def subtracted(x: Any) -> Any:
            for _ in range(1):
                torch._dynamo.graph_break()
                y = x - p
            return y

        for function, wanted in ((multiplied, HOST * HOST), (subtracted, HOST - HOST)):
            assert host(torch.compile(function, backend="eager")(x)).tolist() == wanted.tolist()


def test_an_error_of_a_function_of_numpy_stays_itself(backend: str) -> None:
    with pytest.raises(ValueError, match="cannot reshape array of size 3"):
        np.reshape(Parameter(ops.ones(3)), (2, 2))
