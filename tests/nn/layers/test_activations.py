"""Activations on every backend."""

import inspect

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.errors import ArgumentError, ArgumentTypeError, ShapeError
from tests.nn.behaviours import require_behaviours
from tests.nn.oracle import Case, dtypes_of, require_close, require_like_torch

PLAIN = (
    *("ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Softsign", "LogSigmoid", "Sigmoid", "Tanh", "Tanhshrink"),
    *("Hardsigmoid", "Hardswish"),
)
WIDE = 5 * np.random.default_rng(1).standard_normal((6, 7)).astype("float32")
SOFT = [Case(name, (dim,), ((2, 3, 4),)) for name in ("Softmax", "Softmin", "LogSoftmax") for dim in (0, 1, -1)]

CASES = [
    *(Case(name, (), ((5, 3),)) for name in PLAIN),
    *(Case(name, (), (WIDE,)) for name in PLAIN),
    Case("LeakyReLU"),
    Case("LeakyReLU", (0.3,)),
    Case("LeakyReLU", kwargs={"negative_slope": 0.0}),
    Case("ELU"),
    Case("ELU", (0.5,)),
    Case("CELU"),
    Case("CELU", kwargs={"alpha": 2.0}),
    Case("GELU"),
    Case("GELU", ("tanh",), ((4, 5),)),
    Case("GELU", kwargs={"approximate": "none"}),
    Case("GLU", shapes=((3, 4),)),
    Case("GLU", (0,), ((4, 3),)),
    Case("GLU", shapes=((2, 4, 3),), kwargs={"dim": 1}),
    Case("Softplus", shapes=(WIDE,)),
    Case("Softplus", (2.0,), (WIDE,)),
    Case("Softplus", shapes=(WIDE,), kwargs={"beta": 0.5, "threshold": 1.0}),
    *SOFT,
    Case("Softmax2d", shapes=((2, 3, 4, 5),)),
    Case("Softmax2d", shapes=((3, 4, 5),)),
    Case("Hardtanh"),
    Case("Hardtanh", (-0.5, 0.25), ((5, 6),)),
    Case("Hardtanh", shapes=((5, 6),), kwargs={"min_val": 0.0, "max_val": 6.0}),
    Case("Hardshrink"),
    Case("Hardshrink", (0.25,), ((4, 5),)),
    Case("Softshrink"),
    Case("Softshrink", (0.25,), ((4, 5),)),
    Case("Softshrink", kwargs={"lambd": 0.0}),
    Case("Threshold", (0.1, -20.0), ((4, 5),)),
    Case("Threshold", kwargs={"threshold": 0.5, "value": 0.25}, shapes=((4, 5),)),
    Case("PReLU"),
    Case("PReLU", kwargs={"init": 0.5}),
    Case("PReLU", (3,)),
    Case("PReLU", (3, 0.1), ((2, 3, 4, 5),)),
    Case("PReLU", (1,), ((),)),
    Case("RReLU", train=False),
    Case("RReLU", (0.25, 0.75), train=False),
]
OURS = [Case("ReLU2"), Case("SwiGLU", (0,)), Case("GEGLU", (), ((3, 4),)), Case("Heaviside")]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_layers_compute_what_those_of_torch_do(backend: str, case: Case) -> None:
    # In float64 PyTorch 2.13 multiplies the gradient of hardsigmoid by the 1 / 6 of float32.
    for dtype in ("float32",) if case.name == "Hardsigmoid" else dtypes_of(backend):
        require_like_torch(case, dtype)


EACH = {case.name: case for case in reversed([*CASES, *OURS])}


@pytest.mark.parametrize("name", EACH)
def test_layers_stay_the_same_under_transforms_and_copies(backend: str, name: str) -> None:
    require_behaviours(backend, EACH[name])


@pytest.mark.filterwarnings("ignore:Implicit dimension choice")
@pytest.mark.parametrize("name", ["Softmax", "Softmin", "LogSoftmax"])
def test_an_axis_of_none_is_that_of_torch(backend: str, name: str) -> None:
    for shape in ((3,), (2, 3), (2, 3, 4), (2, 3, 4, 2)):
        require_like_torch(Case(name, shapes=(shape,)), "float32")


def test_layers_that_torch_lacks_follow_their_formulas(backend: str) -> None:
    from scipy.special import erf, expit  # a test dependency of other tests too

    x = np.random.default_rng(0).standard_normal((4, 6)).astype("float32")
    first, second = np.split(x.astype("float64"), 2, -1)
    require_close(nn.ReLU2()(x), np.maximum(x.astype("float64"), 0) ** 2, 2e-6, "ReLU2")
    require_close(nn.SwiGLU()(x), first * second * expit(second), 2e-6, "SwiGLU")
    require_close(nn.GEGLU()(x), first * second * (1 + erf(second / np.sqrt(2))) / 2, 2e-6, "GEGLU")
    require_close(nn.Heaviside(0.25)(x), (x > 0.25).astype("float64"), 0.0, "Heaviside")


def test_a_channel_of_prelu_may_be_the_last_axis(backend: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 5, 3)).astype("float32")
    weight = np.array([0.1, 0.2, 0.3], "float32")
    layer = nn.PReLU(3, data_format="channels_last")
    layer.load_state_dict({"weight": weight})
    require_close(layer(x), np.where(x > 0, x, weight * x), 2e-6, "PReLU")


def test_rrelu_draws_slopes_within_its_range_that_are_equal_on_every_backend(backend: str) -> None:
    x = -np.ones((40, 50), "float32")
    found = ops.to_numpy(nn.RReLU(0.2, 0.6, rng=ops.random.Generator(3))(x))
    assert found.min() < -0.59
    assert found.max() > -0.21
    assert -0.6 <= found.min() <= found.max() <= -0.2
    with ops.use_backend("numpy"):
        np.testing.assert_array_equal(nn.RReLU(0.2, 0.6, rng=ops.random.Generator(3))(x), found)


def test_signatures_and_texts_show_the_options() -> None:
    assert str(inspect.signature(nn.Hardtanh)) == "(min_val: float = -1.0, max_val: float = 1.0)"
    assert repr(nn.Hardtanh(0, max_val=6)) == "Hardtanh(min_val=0.0, max_val=6.0)"
    assert (
        repr(nn.Sequential(nn.ReLU(), nn.PReLU(3))) == "Sequential(\n  (0): ReLU()\n  (1): PReLU(num_parameters=3)\n)"
    )


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="negative_slope must be a number, got 'a'"):
        nn.LeakyReLU("a")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"min_val 1\.0 must be less than max_val -1\.0"):
        nn.Hardtanh(1, -1)
    with pytest.raises(ArgumentError, match=r"approximate must be one of 'none', 'tanh', got 'tahn'.*did you mean"):
        nn.GELU("tahn")
    with pytest.raises(ArgumentError, match="alpha must be above 0, got 0"):
        nn.CELU(0.0)
    with pytest.raises(ArgumentError, match="beta must not be 0"):
        nn.Softplus(0)
    with pytest.raises(ArgumentError, match="lambd must be at least 0"):
        nn.Softshrink(-1)
    with pytest.raises(ArgumentError, match=r"lower 0\.5 must not be more than upper 0\.25"):
        nn.RReLU(0.5, 0.25)
    with pytest.raises(ArgumentError, match="num_parameters must be at least 1"):
        nn.PReLU(0)
    with pytest.raises(ArgumentTypeError, match=r"value.*it takes threshold, value"):
        nn.Threshold(0.5)  # type: ignore[call-arg]
    with pytest.raises(
        ArgumentTypeError, match=r"ReLU\(\): .*takes no option, and a layer its input: nn\.ReLU\(\)\(x\)"
    ):
        nn.ReLU(ops.ones(2))  # type: ignore[call-arg]


def test_wrong_inputs_name_the_layer(backend: str) -> None:
    net = nn.Sequential(nn.ReLU(), nn.PReLU(4))
    with pytest.raises(
        ShapeError, match=r"expected 4 channels on axis 1, got shape \(2, 3\).*in 1 of Sequential, a PReLU"
    ):
        net(ops.zeros((2, 3)))
    with pytest.raises(ShapeError, match=r"expected images .*got shape \(2, 3\).*Softmax2d"):
        nn.Softmax2d()(ops.zeros((2, 3)))
    with pytest.raises(ShapeError, match=r"in GLU"):
        nn.GLU()(ops.zeros((2, 3)))
