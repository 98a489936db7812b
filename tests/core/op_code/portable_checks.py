"""What holds where ops are ordinary functions: run as a program by `test_portable`, in a process of its own."""

import asyncio
import copy
import inspect
import pickle
import sys
import threading
import traceback
from types import FunctionType
from typing import Any, get_type_hints

import numpy as np
import pytest

import emberharmony
from emberharmony import ops
from emberharmony.backend import create_backend, current
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core.dispatch import DISPATCH
from emberharmony.core.errors import BackendMismatchError, IndexOutOfBoundsError, ShapeError
from emberharmony.core.registry import OPS
from emberharmony.core.types import TensorLike
from emberharmony.ops import add, concatenate, sin, softmax

INSTALLED = [name for name in BUILTIN if is_installed(name)]
CODES = {name: spec.function.__code__ for name, spec in OPS.items()}


def check_the_dispatch_is_the_portable_one() -> None:
    assert DISPATCH == "portable"
    assert "emberharmony.core.op_code.portable" in sys.modules


def check_an_op_looks_as_its_declaration() -> None:
    for spec in OPS.values():
        made, declared = spec.function, spec.declared
        assert inspect.isfunction(made)
        assert inspect.signature(made) == inspect.signature(declared)
        assert inspect.getsource(made) == inspect.getsource(declared)
        assert (made.__name__, made.__qualname__, made.__module__, made.__doc__) == (
            (declared.__name__, declared.__qualname__, declared.__module__, declared.__doc__)
        )
        assert get_type_hints(made).keys() == declared.__annotations__.keys()
    assert pickle.loads(pickle.dumps(add)) is copy.deepcopy(add) is add


def check_calls_and_switches() -> None:
    for name in (*INSTALLED, *reversed(INSTALLED)):
        ops.set_backend(name)
        kind = create_backend(name).tensor_type
        x = ops.convert_to_tensor([[1.0, -2.0], [3.0, 4.0]])
        assert type(add(1, 2)) is type(sin([1.0])) is kind
        assert ops.to_numpy(add(x1=x, x2=1)).tolist() == [[2.0, -1.0], [4.0, 5.0]]
        assert ops.to_numpy(concatenate([x, x], axis=1)).shape == (2, 4)
        assert ops.to_numpy(ops.clip(x, min=0.0, max=3.5)).tolist() == [[1.0, 0.0], [3.0, 3.5]]
        assert ops.to_numpy(ops.einsum("ij,ij->i", x, x)).tolist() == [5.0, 25.0]
        assert np.allclose(ops.to_numpy(softmax(x)).sum(-1), 1)
        assert ops.dtype(ops.sum(x, dtype="float32")) == "float32"
        for other in INSTALLED:
            with ops.use_backend(other):
                assert ops.get_backend() == other
                assert type(sin([1.0])) is create_backend(other).tensor_type
            assert type(sin([1.0])) is kind


def check_wrong_calls() -> None:
    for name in INSTALLED:
        ops.set_backend(name)
        with pytest.raises(TypeError, match=r"add\(\) missing 1 required positional argument: 'x2'"):
            add([1])  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"add\(\) got an unexpected keyword argument 'y'"):
            add([1], y=2)  # type: ignore[call-arg]


def check_typed_errors_point_at_the_declaration() -> None:
    file, first = inspect.getsourcefile(add), inspect.getsourcelines(add)[1]
    for name in INSTALLED:
        ops.set_backend(name)
        with pytest.raises(ShapeError, match=rf"add\(\) on backend '{name}': shapes \(2,\) and \(3,\)") as caught:
            add(ops.ones((2,)), ops.ones((3,)))
        assert caught.value.__cause__ is not None
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert [f.lineno for f in frames if f.filename == file and f.name == "add"] == [first + 1] * 2
        assert "^" not in "".join(line for line in traceback.format_list(frames) if f'"{file}"' in line)
        for other in INSTALLED:
            if other not in (name, "numpy"):
                with pytest.raises(BackendMismatchError):
                    sin(create_backend(other).convert([1.0]))


def check_gradients() -> None:
    def loss(w: Any) -> Any:
        return ops.sum(ops.square(ops.tanh(ops.multiply(w, 2.0))))

    w = np.array([0.1, -0.3], "f4")
    wanted = 4 * np.tanh(2 * w) * (1 - np.tanh(2 * w) ** 2)
    for name in INSTALLED:
        ops.set_backend(name)
        x = ops.convert_to_tensor(w)
        np.testing.assert_allclose(ops.to_numpy(ops.grad(loss)(x)), wanted, rtol=1e-5)
        _, push = ops.jvp(loss, (x,), (ops.ones((2,)),))
        np.testing.assert_allclose(ops.to_numpy(push), wanted.sum(), rtol=1e-5)
        curvature = ops.grad(lambda x: ops.sum(ops.grad(loss)(x)))(x)
        assert ops.to_numpy(curvature).shape == (2,)
        assert ops.to_numpy(ops.vmap(lambda v: ops.sin(v))(x)).shape == (2,)


def check_checked_mode() -> None:
    for name in INSTALLED:
        ops.set_backend(name)
        with ops.checked(), pytest.raises(IndexOutOfBoundsError):
            ops.take(ops.ones((3,)), ops.convert_to_tensor([5]))


def check_threads_and_tasks() -> None:
    ops.set_backend("numpy")
    wrong: list[object] = []

    def work(name: str) -> None:
        for _ in range(200):
            with ops.use_backend(name):
                if type(add([1.0], 1.0)) is not create_backend(name).tensor_type:
                    wrong.append(name)
            if ops.get_backend() != "numpy":
                wrong.append(ops.get_backend())

    threads = [threading.Thread(target=work, args=(name,)) for name in INSTALLED * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def task(name: str) -> str:
        with ops.use_backend(name):
            await asyncio.sleep(0)
            return str(create_backend(name).is_tensor(sin([1.0])))

    async def main() -> list[str]:
        return await asyncio.gather(*map(task, INSTALLED))

    assert asyncio.run(main()) == ["True"] * len(INSTALLED)
    assert not wrong


def check_a_new_op_with_parameters_named_as_parts_of_the_source() -> None:
    @emberharmony.register_op
    def residual(result: TensorLike, error: TensorLike, *, active: float = 2.0, slow: float = 0.0) -> Any:
        """Returns the sum."""
        return ops.add(ops.add(result, ops.multiply(error, active)), slow)

    assert isinstance(residual, FunctionType)
    assert residual.__qualname__.endswith("<locals>.residual")
    assert inspect.getsource(residual).lstrip().startswith("@emberharmony.register_op\n")
    for name in INSTALLED:
        ops.set_backend(name)
        assert ops.to_numpy(residual([1.0], error=[2.0])).tolist() == [5.0]
        assert ops.to_numpy(residual([1.0], [2.0], active=1.0, slow=3.0)).tolist() == [6.0]
        assert ops.to_numpy(current().bound.residual([1.0], [2.0], slow=1.0)).tolist() == [6.0]  # type: ignore[attr-defined]
        with pytest.raises(TypeError, match=r"residual\(\) missing 1 required positional argument: 'error'"):
            residual([1.0])  # type: ignore[call-arg]
        with pytest.raises(ShapeError, match=r"residual\(\) on backend|add\(\) on backend"):
            residual(ops.ones((2,)), ops.ones((3,)))
    del OPS["residual"]


def check_no_code_was_exchanged() -> None:
    """Runs last."""
    for name, spec in OPS.items():
        assert spec.function.__code__ is CODES[name]
        assert "active" in spec.function.__code__.co_names


if __name__ == "__main__":
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            check()
            print(name, flush=True)  # noqa: T201
