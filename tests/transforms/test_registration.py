"""Ops and gradients that other packages register, on every backend."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import emberharmony
from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core import op_globals
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from emberharmony.core.registry import ALIASES, OPS
from emberharmony.core.types import Operand, TensorLike
from emberharmony.rules import RULES
from tests.together import together


@pytest.fixture(autouse=True)
def _tidy() -> Iterator[None]:
    before, rules = dict(OPS), dict(RULES)
    yield
    for registry, kept in ((OPS, before), (RULES, rules)):
        registry.clear()  # type: ignore[attr-defined]
        registry.update(kept)  # type: ignore[arg-type]


def test_a_registered_op_converts_arguments_has_gradients_and_raises_typed_errors(backend: str) -> None:
    @emberharmony.register_op
    def scaled_sum(x: TensorLike, y: Operand, *, power: float = 2.0) -> Any:
        """Returns a weighted sum of powers."""
        return ops.sum(ops.multiply(ops.power(x, power), y))

    assert ops.to_numpy(scaled_sum([1.0, 2.0], 3)).tolist() == 15.0
    assert ops.to_numpy(ops.grad(scaled_sum)([1.0, 2.0], 3.0, power=3.0)).tolist() == [9.0, 36.0]
    with pytest.raises(ShapeError, match=backend):
        scaled_sum([1.0, 2.0], [1.0, 2.0, 3.0])


def test_a_registered_gradient_replaces_the_automatic_one(backend: str) -> None:
    @emberharmony.register_op
    def stepped(x: TensorLike) -> Any:
        """Returns the nearest integer."""
        return ops.round(x)

    x = [0.6, 1.7]
    assert ops.to_numpy(ops.grad(lambda x: ops.sum(stepped(x)))(x)).tolist() == [0, 0]

    @emberharmony.register_vjp("stepped")
    def straight_through(g: Any, y: Any, x: Any) -> tuple[Any]:
        return (ops.multiply(g, ops.square(x)),)

    found = ops.to_numpy(ops.grad(lambda x: ops.sum(stepped(x)))(x))
    np.testing.assert_allclose(found, np.square(np.float32(x)), rtol=1e-6)
    twice = ops.grad(lambda x: ops.sum(ops.grad(lambda x: ops.sum(stepped(x)))(x)))(x)
    np.testing.assert_allclose(ops.to_numpy(twice), 2 * np.float32(x), rtol=1e-6)


def test_a_registered_gradient_receives_the_options(backend: str) -> None:
    @emberharmony.register_op
    def tilted(x: TensorLike, *, slope: float = 2.0) -> Any:
        """Returns x times a slope."""
        return ops.multiply(x, slope)

    @emberharmony.register_vjp(tilted)
    def rule(g: Any, y: Any, x: Any, slope: float) -> tuple[Any, None]:
        return ops.multiply(g, -slope), None

    assert float(ops.to_numpy(ops.grad(lambda x: tilted(x, slope=5.0))(1.0))) == -5.0


@pytest.mark.parametrize("keyword", [False, True])
def test_a_registered_gradient_of_another_length_is_refused(backend: str, keyword: bool) -> None:
    @emberharmony.register_op
    def rounded(x: TensorLike, step: float = 1.0) -> Any:
        """Returns the nearest multiple of a step."""
        return ops.multiply(ops.round(ops.divide(x, step)), step)

    emberharmony.register_vjp(rounded)(lambda g, y, x, step: (g,))
    with pytest.raises(AttributeError, match="an op of your own, which is called by its name alone: rounded"):
        _ = ops.rounded  # type: ignore[attr-defined]
    call = (lambda x: rounded(x, step=0.5)) if keyword else rounded
    with pytest.raises(
        ArgumentError, match=r"rule of rounded returned a tuple of length 1; .* \(x, step\), and None for"
    ):
        ops.grad(call)(1.2)
    with pytest.raises(ArgumentTypeError, match=r"is called as rule\(g, y, x, step\), .* this one takes \(g, x\)"):
        emberharmony.register_vjp(rounded)(lambda g, x: (g, None))
    emberharmony.register_vjp(rounded)(lambda g, y, x, step: g)
    with pytest.raises(ArgumentError, match=r"rule of rounded returned \w+;"):
        ops.grad(call)(1.2)
    emberharmony.register_vjp(rounded)(lambda g, y, x, step: (g, None))
    assert float(ops.grad(call)(1.2)) == 1.0


def test_the_name_of_an_op_or_alias_cannot_be_registered_again() -> None:
    def sin(x: TensorLike) -> Any:
        """Returns something else."""
        return x

    with pytest.raises(ArgumentError, match="already named 'sin'"):
        emberharmony.register_op(sin)

    def concat(x: TensorLike) -> Any:
        """Returns something else."""
        return x

    with pytest.raises(ArgumentError, match="already named 'concat'"):
        emberharmony.register_op(concat)


def test_an_op_that_is_registered_again_runs_its_new_body(backend: str) -> None:
    for factor in (2.0, 3.0):

        @emberharmony.register_op
        def enlarged(x: TensorLike) -> Any:
            """Returns x times a factor."""
            return ops.multiply(x, factor)  # noqa: B023

        assert float(ops.to_numpy(enlarged(1.0))) == factor
        assert float(ops.to_numpy(ops.grad(enlarged)(1.0))) == factor
        for other in ops.available_backends():
            with ops.use_backend(other):
                assert float(ops.to_numpy(enlarged(1.0))) == factor
        assert float(ops.to_numpy(enlarged(1.0))) == factor


def own_names() -> list[str]:
    """Returns the names of attributes and globals of the installed backends that are not ops."""
    found: set[str] = set()
    for name in (name for name in BUILTIN if is_installed(name)):
        backend = emberharmony.create_backend(name)
        found |= {*dir(backend), *dir(backend.bound)}
        found |= {
            part.removeprefix(f"{backend.prefix}_") for part in vars(op_globals) if part.startswith(backend.prefix)
        }
    return sorted(found - set(OPS) - set(ALIASES))


@together("name", own_names())
def test_a_name_that_backends_use_themselves_cannot_be_registered(name: str) -> None:
    def named(x: TensorLike) -> Any:
        """Returns twice x."""
        return ops.multiply(x, 2)

    named.__name__ = name
    with pytest.raises(ArgumentError, match=rf"register_op: the name '{name}' is reserved"):
        emberharmony.register_op(named)
    assert name not in OPS
    assert ops.add([1, 2], 3).tolist() == [4, 5]


def test_builtins_functions_without_a_body_and_gradients_of_unknown_ops_are_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="plain function"):
        emberharmony.register_op(len)

    def bodiless(x: TensorLike) -> Any:
        """Returns nothing yet."""

    with pytest.raises(ArgumentError, match="has no body"):
        emberharmony.register_op(bodiless)
    assert "bodiless" not in OPS
    with pytest.raises(ArgumentError, match="no op is named 'sinn'"):
        emberharmony.register_vjp("sinn")


def test_a_gradient_of_a_rule_has_the_shape_of_its_argument(backend: str) -> None:
    @emberharmony.register_op
    def scale_by(a: TensorLike, b: TensorLike) -> Any:
        return ops.multiply(a, b)

    @emberharmony.register_vjp(scale_by)
    def pull_without_sum(g: Any, y: Any, a: Any, b: Any) -> Any:
        return ops.multiply(g, b), ops.multiply(g, a)

    a, b = ops.array([1.0, 2.0, 3.0]), ops.array(2.0)
    with pytest.raises(ShapeError, match=r"rule of scale_by returned a gradient of shape \(3,\) for b, .* shape \(\)"):
        ops.grad(lambda b: ops.sum(scale_by(a, b)))(b)
    assert ops.grad(lambda b: ops.sum(scale_by(a, ops.broadcast_to(b, (3,)))))(b).tolist() == 6.0
