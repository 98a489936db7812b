"""An op is a plain function with its own frame, file and line; it can be pickled and follows each backend switch."""

import copy
import inspect
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend import current
from emberharmony.core import dispatch, op_globals
from emberharmony.core.dispatch import op
from emberharmony.core.errors import ArgumentTypeError, BackendMismatchError, EmberError, ShapeError
from emberharmony.core.registry import OPS
from emberharmony.core.types import Operand, Tensor
from emberharmony.ops import add, sin

SOURCE = Path(inspect.getsourcefile(add) or "")


def test_an_op_is_a_plain_function_with_the_declared_signature() -> None:
    assert inspect.isfunction(add)
    assert str(inspect.signature(add)) == "(x1: 'Operand', x2: 'Operand') -> 'Tensor'"
    assert add.__name__ == add.__qualname__ == "add"
    assert add.__module__ == "emberharmony.ops.math"
    assert SOURCE.name == "math.py"
    assert inspect.getsource(add).startswith('@op(elementwise=True, takes="all", finite="gradient")\ndef add(')


def test_ops_pickle_and_copy_as_themselves() -> None:
    assert pickle.loads(pickle.dumps(add)) is add
    assert copy.deepcopy(add) is add


def test_the_type_hints_of_every_op_resolve() -> None:
    from typing import get_type_hints

    assert set(get_type_hints(add)) == {"x1", "x2", "return"}
    for spec in OPS.values():
        get_type_hints(spec.function)


def test_keywords_work_and_wrong_arguments_raise(backend: str) -> None:
    assert ops.to_numpy(add(x1=[1], x2=[2])).tolist() == [3]
    with pytest.raises(TypeError, match=r"add\(\) missing 1 required positional argument: 'x2'"):
        add([1])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"add\(\) got an unexpected keyword argument 'y'"):
        add([1], y=2)  # type: ignore[call-arg]


def test_the_traceback_names_the_declaration(backend: str) -> None:
    x = ops.convert_to_tensor([[1.0, 2.0, 3.0]] * 2)
    y = ops.convert_to_tensor([1.0, 2.0, 3.0, 4.0])
    with pytest.raises(ShapeError) as caught:
        add(x, y)
    frames = traceback.extract_tb(caught.value.__traceback__)
    first = inspect.getsourcelines(add)[1]
    assert any(f.filename == str(SOURCE) and f.name == "add" and f.lineno in (first, first + 1) for f in frames)
    assert str(caught.value) == (
        f"add() on backend '{backend}': shapes (2, 3) and (4,) do not broadcast; each axis must be equal or 1"
    )
    assert isinstance(caught.value.__cause__, Exception)
    assert not isinstance(caught.value.__cause__, EmberError)


def test_an_op_imported_by_name_follows_every_backend_switch(backend: str) -> None:
    assert type(sin([1.0])) is current().tensor_type
    assert type(add(1, 2)) is current().tensor_type


@pytest.mark.parametrize("value", [1.5, True, 2, [1.0, 2.0], (1, 2), range(3), [[1], [2]], np.float64(2), np.ones(2)])
def test_numbers_lists_and_arrays_become_tensors(value: object, backend: str) -> None:
    result = add(value, value)
    assert isinstance(result, current().tensor_type)
    assert tuple(result.shape) == np.shape(value)


def test_operands_that_are_all_numbers_give_a_tensor(backend: str) -> None:
    for call, dtype, value in (
        (lambda: ops.add(1, 2), "int64", 3),
        (lambda: ops.add(1, 2.5), "float32", 3.5),
        (lambda: ops.multiply(True, True), "bool", True),
        (lambda: ops.maximum(1.5, 2), "float32", 2.0),
        (lambda: ops.power(2, 3), "int64", 8),
        (lambda: ops.less(1, 2), "bool", True),
        (lambda: ops.bitwise_and(6, 3), "int64", 2),
        (lambda: ops.arctan2(0.0, 1.0), "float32", 0.0),
        (lambda: ops.where(True, 1, 2), "int64", 1),
        (lambda: ops.clip(5, 1, 3), "int64", 3),
    ):
        found = call()
        assert ops.is_tensor(found)
        assert (found.shape, ops.dtype(found), found.tolist()) == ((), dtype, value)


def test_lists_of_tensors_are_stacked(backend: str) -> None:
    row = ops.convert_to_tensor([1.0, 2.0])
    assert ops.to_numpy(add([row, row], 1)).tolist() == [[2.0, 3.0], [2.0, 3.0]]


def test_a_tensor_of_another_backend_raises(backend: str) -> None:
    others = {"numpy": "torch", "torch": "mlx", "mlx": "torch"}
    pytest.importorskip({"torch": "torch", "mlx": "mlx.core"}[others[backend]])
    with ops.use_backend(others[backend]):
        foreign = ops.convert_to_tensor([1.0])
    with pytest.raises(BackendMismatchError, match=rf"sin\(\) on backend '{backend}'.*ops\.to_numpy"):
        sin(foreign)
    with pytest.raises(BackendMismatchError):
        add([1.0], foreign)


def test_subclasses_of_the_tensor_type_are_accepted() -> None:
    torch = pytest.importorskip("torch")
    before = ops.get_backend()
    ops.set_backend("torch")
    try:
        parameter = torch.nn.Parameter(torch.ones(2))
        assert add(parameter, parameter).requires_grad
        assert add(2.0, parameter).requires_grad
    finally:
        ops.set_backend(before)


@pytest.mark.parametrize("name", ["sin", "add", "sum"])
def test_the_code_of_an_op_has_no_locals_besides_its_parameters(name: str, backend: str) -> None:
    """A local makes each call slower; the result takes the place of a parameter, and errors reach `rescue` unbound."""
    code = getattr(current().bound, name).__code__
    assert code.co_varnames == tuple(inspect.signature(getattr(ops, name)).parameters)


@pytest.mark.sampled(2)
def test_torch_compile_traces_ops_without_a_graph_break() -> None:
    """Runs in a fresh process: after a `use_backend` ops read a ContextVar, which torch.compile cannot trace."""
    pytest.importorskip("torch")
    program = (
        "import torch\nfrom emberharmony import ops\nops.set_backend('torch')\n"
        "def f(x): return ops.add(ops.sin(x), ops.add(x, -1))\n"
        "x = torch.ones(3)\n"
        "assert torch.equal(torch.compile(f, fullgraph=True, backend='eager')(x), f(x))\n"
        "y = torch.ones(3, dtype=torch.float64)\n"
        "g = torch.compile(ops.add, fullgraph=True, backend='eager')\n"
        "assert g(x, y).dtype is torch.float64\n"
        "h = torch.compile(lambda x: ops.sin(ops.maximum(x, y)), fullgraph=True, backend='eager')\n"
        "assert torch.equal(h(y), torch.sin(y))\n"
        "ops.set_default_float('float64')\n"
        "s = torch.compile(ops.sin, fullgraph=True, backend='eager')\n"
        "assert s(torch.tensor([1, 2])).dtype is torch.float64 and s(x).dtype is torch.float32\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)


def test_fast_calls_the_full_implementation_when_the_native_one_raises(backend: str) -> None:

    calls = []

    def refusing(x: object) -> object:
        calls.append("native")
        raise RuntimeError("not for me")

    @dispatch.fast(refusing, "")
    def full(x: object) -> object:
        calls.append("full")
        return x

    class Other(type(current())):  # type: ignore[misc]
        name = "other"
        sin = staticmethod(full)

    bound = Other().bound
    x = ops.convert_to_tensor([1.0])
    assert bound.sin(x) is x
    assert calls == ["native", "full"]


def test_the_globals_of_each_backend_have_its_prefix(backend: str) -> None:
    sin([1.0])
    prefix = current().prefix
    assert vars(op_globals)[f"{prefix}_backend"] is current()
    assert vars(op_globals)[f"{prefix}_type"] is current().tensor_type


@pytest.mark.slow
@pytest.mark.sampled(2)
def test_torch_compile_accepts_a_function_that_calls_ops_of_numpy() -> None:
    """Constants of the code that are not literals would make torch.compile raise an AssertionError here."""
    pytest.importorskip("torch")
    program = (
        "import numpy as np, torch\nfrom emberharmony import ops\nops.set_backend('numpy')\n"
        "x = np.ones(3, np.float32)\n"
        "def f(t): return t + float(ops.sum(ops.add(ops.sin(x), x)))\n"
        "t = torch.ones(2)\n"
        "assert torch.allclose(torch.compile(f, backend='eager')(t), f(t))\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)


def test_the_ops_of_a_backend_have_no_other_names(backend: str) -> None:
    with pytest.raises(AttributeError, match="no op is named 'sine'"):
        op_globals.active().sine


def test_an_error_of_a_watcher_passes_the_slow_path_unchanged(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class WatchersError(RuntimeError):
        of_watcher = True

    raised = WatchersError("not of the op")

    def fails(*arguments: Any) -> None:
        raise raised

    monkeypatch.setattr(type(current()), "convert", fails)
    with pytest.raises(WatchersError) as found:
        ops.add([1.0], 2.0)
    assert found.value is raised


def test_traced_tensors_in_a_list_reach_their_tape(backend: str) -> None:
    x = ops.array([2.0, 3.0])
    found = ops.grad(lambda x: ops.sum(ops.multiply([ops.take(x, 1), ops.take(x, 0)], [5.0, 7.0])))(x)
    assert found.tolist() == [7.0, 5.0]


def test_an_error_of_a_function_stays_itself_beside_a_list(backend: str) -> None:
    with pytest.raises(KeyError, match="absent"):
        ops.map(lambda x: {}["absent"], [1.0, 2.0])


def test_the_first_call_of_an_op_names_an_unknown_keyword(backend: str) -> None:
    with pytest.raises(ArgumentTypeError, match="use axis="):
        dispatch._call_first_time("sum", ([1.0],), {"dim": 0})
    assert dispatch._call_first_time("sum", ([1.0, 2.0],), {"axis": 0}).tolist() == 3.0


@pytest.fixture
def applied() -> Iterator[Any]:
    @op()
    def test_applied(x: Operand, function: Callable[..., Any]) -> Tensor:
        """Returns what a function makes of a tensor."""
        result: Tensor = function(x)
        return result

    yield test_applied
    del OPS["test_applied"]


def test_an_error_of_a_function_stays_itself_beside_a_number(applied: Any, backend: str) -> None:
    def fail(x: Any) -> Any:
        return {}["absent"]

    assert applied([2.0], ops.exp).tolist() == ops.exp([2.0]).tolist()
    for x in ([1.0], ops.ones(1)):
        with pytest.raises(KeyError, match="absent"):
            applied(x, fail)


def test_a_warning_behind_an_error_is_raised_in_its_place(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> None:
        raise RuntimeError("of the library") from UserWarning("made an error by a filter")

    monkeypatch.setattr(type(current()), "convert", fail)
    with pytest.raises(UserWarning, match="made an error by a filter"):
        ops.add([1.0], 2.0)
