"""A traced tensor cannot leave the differentiated function silently; other tensors may be read in it."""

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, ops
from emberharmony.core.errors import TracedTensorError, UnsupportedOpError
from tests.together import together

Transform = Callable[[Callable[[Any], Any]], Any]
POINT = [0.3, 0.7]
TRANSFORMS: dict[str, Transform] = {
    "grad": lambda f: ops.grad(f)(POINT),
    "vjp": lambda f: ops.vjp(f, POINT)[1](1.0),
    "jvp": lambda f: ops.jvp(f, (POINT,), ([1.0, 2.0],)),
    "jacobian": lambda f: ops.jacobian(f)(POINT),
    "jacfwd": lambda f: ops.jacfwd(f)(POINT),
    "hessian": lambda f: ops.hessian(f)(POINT),
    "grad of grad": lambda f: ops.grad(lambda x: ops.sum(ops.grad(f)(x)))(POINT),
    "vmap of grad": lambda f: ops.vmap(ops.grad(f))([POINT, [0.1, 0.2]]),
    "grad of an outer function": lambda f: ops.grad(lambda x: ops.grad(lambda y: ops.multiply(y, f(x)))(1.0))(POINT),
    "jvp of an outer function": lambda f: ops.jvp(
        lambda x: ops.grad(lambda y: ops.multiply(y, f(x)))(1.0), (POINT,), ([1.0, 2.0],)
    ),
    "grad around jvp": lambda f: ops.grad(lambda x: ops.jvp(lambda y: ops.multiply(y, f(x)), (1.0,), (1.0,))[1])(POINT),
    "backward": lambda f: ops.backward(lambda: f(PARAMETER[0].value), PARAMETER),
}
PARAMETER: list[Parameter] = []


@pytest.fixture(autouse=True)
def _parameter(backend: str) -> None:
    PARAMETER[:] = [Parameter(POINT)]


def read_back(x: Any) -> Any:
    return ops.convert_to_tensor(ops.to_numpy(x))


@together("transform", TRANSFORMS)
def test_to_numpy_refuses_a_traced_tensor(transform: str, backend: str) -> None:
    with pytest.raises(TracedTensorError, match=r"to_numpy\(\) on backend .*host_call.*stop_gradient"):
        TRANSFORMS[transform](lambda v: ops.sum(read_back(ops.sin(v))))


@together("transform", TRANSFORMS)
def test_view_refuses_a_traced_tensor(transform: str, backend: str) -> None:
    with pytest.raises(UnsupportedOpError, match=r"view\(\)"):
        TRANSFORMS[transform](lambda v: ops.sum(ops.view(ops.view(v, "int32"), "float32")))


LEFT: dict[str, Callable[[Any], Any]] = {
    "float": lambda v: ops.multiply(ops.sum(v), float(ops.sum(v))),
    "int": lambda v: ops.multiply(ops.sum(v), int(ops.sum(v))),
    "item": lambda v: ops.multiply(ops.sum(v), ops.sum(v).item()),
    "math.sin": lambda v: ops.add(ops.sum(v), math.sin(ops.sum(v))),
    "tolist": lambda v: ops.sum(ops.multiply(ops.sin(v).tolist(), v)),
    "format": lambda v: ops.multiply(ops.sum(v), float(f"{float(ops.sum(v)):.3f}")),
}
FOREIGN: dict[str, Callable[[Any], Any]] = {
    "numpy.asarray": lambda v: ops.sum(ops.convert_to_tensor(np.asarray(ops.sin(v)))),
    "numpy.square": lambda v: ops.sum(ops.convert_to_tensor(np.square(v))),
    "numpy.float64": lambda v: ops.multiply(ops.sum(v), np.float64(ops.sum(v))),
    "numpy.einsum": lambda v: ops.convert_to_tensor(np.einsum("i,i->", v, v)),
}
READS = {**LEFT, **FOREIGN}


@together("transform", TRANSFORMS)
@pytest.mark.parametrize("read", READS)
def test_a_traced_tensor_that_becomes_a_number_or_array_is_refused(read: str, transform: str, backend: str) -> None:
    """On MLX this needs checked mode, because MLX arrays do not report that they are read."""
    # PyTorch itself raises a RuntimeError when NumPy reads a traced tensor.
    kinds = (TracedTensorError, RuntimeError) if backend == "torch" and read in FOREIGN else TracedTensorError
    with ops.checked(backend == "mlx"), pytest.raises(kinds):
        TRANSFORMS[transform](READS[read])


NOT_TRACED: dict[str, Callable[[Any], Any]] = {
    "a constant": lambda v: ops.sum(ops.multiply(v, read_back(ops.array([1.0, 2.0])))),
    "a stopped gradient": lambda v: ops.sum(ops.multiply(v, read_back(ops.stop_gradient(ops.exp(v))))),
    "a position": lambda v: ops.sum(ops.multiply(v, float(ops.argmax(v)))),
    "a comparison": lambda v: ops.sum(ops.multiply(v, ops.to_numpy(ops.greater(v, 0.5)).astype("float32"))),
    "an integer": lambda v: ops.multiply(ops.sum(v), int(ops.cast(ops.sum(v), "int32"))),
    "a choice by a comparison": lambda v: ops.multiply(ops.sum(v), read_back(ops.where(v[0] > 0, 2.0, 3.0))),
    "an if": lambda v: ops.sum(v) if ops.sum(v) > 0 else ops.negative(ops.sum(v)),
    "an if on a number": lambda v: ops.sum(v) if ops.sum(v) else ops.negative(ops.sum(v)),
    "a shape": lambda v: ops.divide(ops.sum(v), len(v) * v.shape[0]),
}


@pytest.mark.parametrize("checked", [False, True])
@together("transform", TRANSFORMS)
@pytest.mark.parametrize("read", NOT_TRACED)
def test_a_tensor_that_is_not_traced_may_be_read(read: str, transform: str, checked: bool, backend: str) -> None:
    with ops.checked(checked):
        TRANSFORMS[transform](NOT_TRACED[read])


def test_results_with_zero_derivative_may_be_read(backend: str) -> None:
    for step in (ops.floor, ops.ceil, ops.trunc, ops.round):
        gradient = ops.grad(lambda v, step=step: ops.sum(ops.multiply(v, read_back(step(v)))))([1.2, 2.7])
        assert ops.to_numpy(gradient).tolist() == ops.to_numpy(step([1.2, 2.7])).tolist()


def test_another_backend_refuses_a_traced_tensor(backend: str) -> None:
    """DLPack is the only way from one backend to another."""

    def moved(tensor: Callable[[Any], Any]) -> Any:
        def loss(v: Any) -> Any:
            with ops.use_backend(other):
                ops.from_dlpack(tensor(v))
            return ops.sum(v)

        return ops.grad(loss)(POINT)

    constant = ops.array(POINT)
    for other in ops.available_backends():
        moved(lambda v: constant)
        if other != backend:
            with pytest.raises(TypeError, match="being differentiated"):  # TracedTensorError or BackendMismatchError
                moved(lambda v: v)


def test_is_traced_tells_traced_tensors_from_constants(backend: str) -> None:
    from emberharmony.backend import current

    seen = []

    def loss(v: Any) -> Any:
        seen.append([current().is_traced(x) for x in (v, ops.exp(v), ops.stop_gradient(v), ops.ones(2))])
        return ops.sum(v)

    assert not current().is_traced(ops.ones(2))
    ops.grad(loss)(POINT)
    assert seen == [[True, True, False, False]]
    assert not current().is_traced(ops.ones(2))


def test_tensors_may_be_read_again_after_an_error_in_a_transform(backend: str) -> None:
    def failing(v: Any) -> Any:
        raise LookupError("inside")

    for transform in TRANSFORMS.values():
        with pytest.raises(LookupError):
            transform(failing)
        assert ops.to_numpy(ops.exp(ops.zeros(2))).tolist() == [1.0, 1.0]
        assert float(ops.sum(ops.ones(2))) == 2.0


class TestTorch:
    """Tensors that PyTorch's own autograd records belong to the user and may be read."""

    @pytest.fixture(autouse=True)
    def _torch(self, backend: str) -> None:
        if backend != "torch":
            pytest.skip("tests PyTorch only")

    @pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
    def test_a_torch_parameter_may_be_read(self) -> None:
        import torch

        weight = torch.nn.Parameter(torch.tensor([2.0, 3.0]))
        assert ops.to_numpy(weight).tolist() == [2.0, 3.0]
        computed = ops.multiply(weight, 2.0)
        assert ops.to_numpy(computed).tolist() == [4.0, 6.0]
        assert float(ops.sum(computed)) == 10.0
        for read in (weight, computed):
            gradient = ops.grad(lambda v, read=read: ops.sum(ops.multiply(v, read_back(read))))([1.0, 1.0])
            assert gradient.tolist() == read.tolist()
            assert ops.grad(lambda v, read=read: ops.multiply(v[0], float(read[0])))([1.0, 1.0])[0] == read[0]

    def test_a_torch_parameter_that_a_transform_differentiates_may_not_be_read(self) -> None:
        import torch

        weight = torch.nn.Parameter(torch.tensor([2.0, 3.0]))
        for primal in (weight, ops.multiply(weight, 2.0)):
            with pytest.raises(TracedTensorError):
                ops.grad(lambda v: ops.sum(read_back(v)))(primal)

    def test_tensors_traced_by_torch_func_are_refused(self) -> None:
        import torch

        with pytest.raises(TracedTensorError):
            torch.func.grad(lambda v: ops.sum(read_back(ops.sin(v))))(torch.ones(2))
        ops.jvp(ops.sin, (torch.ones(2),), (torch.ones(2),))  # PyTorch warns about an import in its first jvp
        with pytest.raises(TracedTensorError):
            torch.func.jvp(lambda v: read_back(ops.sin(v)), (torch.ones(2),), (torch.ones(2),))

    def test_tensors_read_under_no_grad_are_constants(self) -> None:
        import torch

        def loss(v: Any) -> Any:
            with torch.no_grad():
                scale = float(ops.sum(v)) + ops.to_numpy(v).sum()
            return ops.multiply(ops.sum(v), float(scale))

        assert ops.grad(loss)([1.0, 2.0]).tolist() == [6.0, 6.0]

    def test_torch_kernels_may_read_their_own_tensors(self) -> None:
        import torch

        def loss(v: Any) -> Any:
            filled = torch.zeros(2).masked_fill(torch.tensor([True, False]), v[0])
            return filled.sum() + torch.nn.functional.softplus(v[1]) + torch.pow(v[0], v[1])

        assert torch.isfinite(ops.grad(loss)([1.0, 2.0])).all()

    def test_tensors_made_in_inference_mode_can_be_differentiated(self) -> None:
        import torch

        with torch.inference_mode():
            x = torch.tensor([1.0, 2.0])
        assert ops.grad(lambda v: ops.sum(ops.square(v)))(x).tolist() == [2.0, 4.0]
        assert ops.vjp(ops.square, x)[1](torch.ones(2))[0].tolist() == [2.0, 4.0]
        assert ops.grad(lambda v: ops.sum(ops.grad(lambda w: ops.sum(ops.power(w, 3)))(v)))(x).tolist() == [6.0, 12.0]

    def test_cond_and_custom_autograd_functions_run_inside_a_transform(self) -> None:
        import torch

        def loss(v: Any) -> Any:
            return torch.cond(v.sum() > 0, lambda v: v.sum(), lambda v: (2 * v).sum(), (v,))

        assert ops.grad(loss)([1.0, 2.0]).tolist() == [1.0, 1.0]
        doubled = Doubled.apply
        assert ops.vjp(lambda v: doubled(v), [1.0, 2.0])[1]([1.0, 1.0])[0].tolist() == [2.0, 2.0]

    def test_detached_tensors_are_constants_and_deepcopy_is_refused(self) -> None:
        """A user who writes `detach` or `data` asks for a constant."""
        assert ops.grad(lambda v: ops.sum(ops.multiply(v, v.detach())))([1.0, 2.0]).tolist() == [1.0, 2.0]
        assert ops.grad(lambda v: ops.sum(ops.multiply(v, v.data)))([1.0, 2.0]).tolist() == [1.0, 2.0]
        with pytest.raises(RuntimeError, match="deepcopy"):
            ops.grad(lambda v: ops.sum(copy.deepcopy(ops.sin(v))))([1.0, 2.0])


class TestMLX:
    """A gradient inside a gradient does not change how arrays of the outer one are traced."""

    @pytest.fixture(autouse=True)
    def _mlx(self, backend: str) -> None:
        if backend != "mlx":
            pytest.skip("tests MLX only")

    @pytest.mark.parametrize("inner", ["grad", "jvp", "vjp", "jacobian"])
    def test_results_of_an_inner_transform_may_be_read(self, inner: str) -> None:
        def derivative(z: Any) -> Any:
            ones = ops.ones(2)
            return {
                "grad": lambda: ops.grad(lambda z: ops.sum(ops.sin(z)))(z),
                "jvp": lambda: ops.jvp(ops.sin, (z,), (ones,))[1],
                "vjp": lambda: ops.vjp(ops.sin, z)[1](ones)[0],
                "jacobian": lambda: ops.sum(ops.jacobian(ops.sin)(z), 1),
            }[inner]()

        def loss(read: Callable[[Any], Any]) -> Any:
            def computed(x: Any) -> Any:
                w = ops.exp(x)
                g = derivative(ops.multiply(w, 1.0))
                read(g)
                return ops.sum(ops.multiply(g, w))

            return ops.to_numpy(ops.grad(computed)(POINT))

        wanted = loss(lambda g: None)
        w = np.exp(POINT)
        assert np.allclose(wanted, w * np.cos(w) - w * w * np.sin(w), atol=1e-5)
        for read in (ops.eval, lambda g: bool(ops.sum(g) > 0), lambda g: ops.to_numpy(ops.stop_gradient(g))):
            assert np.allclose(loss(read), wanted, atol=1e-6)

    def test_a_compiled_function_may_close_over_a_traced_tensor(self) -> None:
        scale = ops.compile(lambda v: ops.multiply(v, w[0]))
        for order in (2.0, 3.0):  # the second call must not reuse the trace of the first
            w: list[Any] = []

            def inner(y: Any, order: float = order, w: list[Any] = w) -> Any:
                w[:] = [y]
                return ops.multiply(ops.sum(scale(ops.ones(2))), order)

            with ops.checked():
                globals()["w"] = w
                assert float(ops.grad(inner)(5.0)) == 2 * order


w: list[Any] = []


def _doubled() -> Any:
    torch = pytest.importorskip("torch")

    class Doubled(torch.autograd.Function):
        """An autograd function that a user defines."""

        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return 2 * x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g

    return Doubled


try:
    Doubled: Any = _doubled()
except pytest.skip.Exception:
    Doubled = None
