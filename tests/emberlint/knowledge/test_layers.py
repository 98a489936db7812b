"""The rows for layers, losses, optimizers and loaders: the parameters and defaults of both sides are the same."""

import ast
import inspect
from operator import attrgetter
from pkgutil import resolve_name
from typing import Any

import pytest

from emberharmony import ops
from emberlint.knowledge.replacements import PACKAGE, replacement_table
from emberlint.knowledge.signatures import DROPPED, Signature, signatures, signatures_of, translate
from tests.together import together

torch = pytest.importorskip("torch")
ROWS = {name: one for name, one in signatures().items() if one.op.startswith(PACKAGE)}
TORCH = {name: one for name, one in ROWS.items() if name.startswith("torch.")}
# Constructors that take `*args`, or that hide their parameters behind overloads.
HIDDEN = {"torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN"}


def defaults(found: Any) -> dict[str, Any]:
    """Returns the parameters of a function or class with their defaults."""
    return {p.name: p.default for p in inspect.signature(found).parameters.values()}


@together("name", TORCH)
def test_the_parameters_of_a_row_are_those_of_the_library(name: str) -> None:
    found = TORCH[name]
    native = inspect.signature(resolve_name(found.native)).parameters
    places = [one.name for one in native.values() if one.kind is one.POSITIONAL_OR_KEYWORD]
    if any(one.kind is one.VAR_KEYWORD for one in native.values()):
        pytest.skip("the constructor hides its parameters; a call below shows them")
    assert [one for one in found.places if not one.startswith("*")] == places
    assert {one.lstrip("*") for one in found.named} | {"args", "modules", "tensors"} >= set(native)


@together("name", TORCH)
def test_arguments_that_are_left_out_mean_the_same(name: str) -> None:
    found = TORCH[name]
    theirs, ours = defaults(resolve_name(found.native)), defaults(resolve_name(found.op))
    for native, mine in found.arguments.items():
        if mine == DROPPED or native not in theirs or mine in found.fills or native.lstrip("*") in found.required:
            continue
        one, other = theirs[native], ours[mine]
        # PyTorch's function relu is the activation that is named "relu" here, and an empty list of members is None
        same = one == other or getattr(one, "__name__", one) == other or (one is None and other == ())
        assert same or name.endswith((".Parameter", ".Buffer")), (native, one, other)


@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_the_parameters_of_recurrent_layers() -> None:
    for name in HIDDEN:
        places = TORCH[name].places
        given = dict(zip(places, (3, 4, *(None,) * len(places)), strict=False))
        values = {"num_layers": 2, "bias": False, "batch_first": True, "bidirectional": True, "nonlinearity": "relu"}
        values |= {"dropout": 0.25, "proj_size": 2}
        arguments = [values.get(one, given[one]) for one in places]
        native = resolve_name(name)(*arguments)
        with ops.use_backend("torch"):
            mine = resolve_name(TORCH[name].op)(*arguments)
            mine.load_state_dict(native.state_dict())
            x = torch.ones(2, 5, 3)
            native.eval(), mine.eval()
            assert torch.allclose(native(x)[0], mine(x)[0], atol=1e-6)


def test_every_row_names_a_replacement_too() -> None:
    assert {one.native for one in ROWS.values()} <= set(replacement_table())


INPUTS: dict[str, tuple[Any, ...]] = {
    "target": (torch.tensor([1, 0, 2]),),
    "two": (torch.linspace(-2, 2, 12).reshape(3, 4), torch.linspace(0.1, 0.9, 12).reshape(3, 4)),
}
LOGITS, LIKE = INPUTS["two"]
LOSSES: dict[str, tuple[Any, ...]] = {
    "binary_cross_entropy": (LIKE, LIKE.flip(0)),
    "cross_entropy": (LOGITS, INPUTS["target"][0]),
    "nll_loss": (LOGITS, INPUTS["target"][0]),
    "multi_margin_loss": (LOGITS, INPUTS["target"][0]),
    "multilabel_margin_loss": (LOGITS, torch.tensor([[1, 0, -1, 2]] * 3)),
    "multilabel_soft_margin_loss": (LOGITS, (LIKE > 0.5).float()),
    "hinge_embedding_loss": (LOGITS, LIKE.sub(0.5).sign()),
    "soft_margin_loss": (LOGITS, LIKE.sub(0.5).sign()),
    "cosine_embedding_loss": (LOGITS, LIKE, torch.tensor([1, -1, 1])),
    "margin_ranking_loss": (LOGITS[:, 0], LIKE[:, 0], torch.tensor([1, -1, 1])),
    "triplet_margin_loss": (LOGITS, LIKE, LIKE.flip(0)),
    "triplet_margin_with_distance_loss": (LOGITS, LIKE, LIKE.flip(0)),
    "gaussian_nll_loss": (LOGITS, LIKE, LIKE),
    "ctc_loss": (LOGITS.reshape(3, 1, 4).log_softmax(2), torch.tensor([[1]]), torch.tensor([3]), torch.tensor([1])),
}
FUNCTIONS = [one for name, one in TORCH.items() if name.startswith("torch.nn.functional.")]


@pytest.mark.parametrize("found", FUNCTIONS, ids=lambda one: one.native)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_losses_have_the_values_of_the_library(found: Signature) -> None:
    given = LOSSES.get(found.native.rpartition(".")[2], (LOGITS, LIKE))
    for options in ({}, {"reduction": "sum"}, {"reduction": "none"}):
        keywords = [one for one in options if one in found.named]
        plan = translate(found, len(given), keywords)
        with ops.use_backend("torch"):
            mine = resolve_name(found.op)(
                *(one for one, key in zip(given, plan.keywords, strict=False) if key is None),
                **{key: one for one, key in zip([*given, *options.values()], plan.keywords, strict=True) if key},
            )
        expected = resolve_name(found.native)(*given, **options)
        assert mine.shape == expected.shape
        assert torch.allclose(mine, expected, atol=1e-6)


IMAGE = torch.arange(2 * 3 * 7 * 8.0).sin().reshape(2, 3, 7, 8)


@pytest.mark.parametrize(
    "name, arguments, options",
    [
        ("torch.nn.functional.max_pool2d", (2,), {}),
        ("torch.nn.functional.max_pool2d", ((2, 3),), {"stride": 1, "padding": 1}),
        ("torch.nn.functional.max_pool2d", (2, 2, 0, 2), {"ceil_mode": True}),
        ("torch.nn.functional.avg_pool2d", (2,), {}),
        ("torch.nn.functional.avg_pool2d", (3, 2, 1, True), {}),
        ("torch.nn.functional.avg_pool2d", (3, 2), {"padding": 1, "count_include_pad": False, "divisor_override": 2}),
    ],
)
def test_pools_have_the_values_of_the_library(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    found = signatures()[name]
    plan = translate(found, 1 + len(arguments), [*options])
    pairs = list(zip([IMAGE, *arguments, *options.values()], plan.keywords, strict=True))
    pairs[1] = ((arguments[0],) * 2 if isinstance(arguments[0], int) else arguments[0], pairs[1][1])
    fills = {key: ast.literal_eval(value) for key, value in plan.fills}
    with ops.use_backend("torch"):
        named = {key: one for one, key in pairs if key} | fills
        mine = attrgetter(found.op)(ops)(*(one for one, key in pairs if key is None), **named)
    expected = resolve_name(name)(IMAGE, *arguments, **options)
    assert mine.shape == expected.shape
    assert torch.allclose(mine, expected, atol=1e-6)


@pytest.mark.parametrize("library", ["mlx.nn", "mlx.optimizers"])
def test_the_names_of_mlx_exist(library: str) -> None:
    pytest.importorskip("mlx.core")
    names = [name for name in replacement_table() if name.startswith(f"{library}.")]
    assert len(names) > 10
    assert all(resolve_name(name) is not None for name in names)


def test_a_loss_of_mlx_has_the_values_of_the_library() -> None:
    mx = pytest.importorskip("mlx.core")
    one, other = mx.array([1.0, 2.0, 4.0]), mx.array([0.5, 2.5, 1.0])
    for name in ("mlx.nn.losses.mse_loss", "mlx.nn.losses.l1_loss"):
        for reduction in ("mean", "sum", "none"):
            found = signatures_of(name)[0]
            with ops.use_backend("mlx"):
                mine = resolve_name(found.op)(one, other, reduction=reduction)
            assert mx.allclose(mine, resolve_name(name)(one, other, reduction))
