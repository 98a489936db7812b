"""Declarations are read right: parameters, roles, primitives and composites."""

import pytest

from emberharmony import ops
from emberharmony.core.registry import ALIASES, EMPTY, OPS, OpSpec, register


def test_parameters_of_a_declaration() -> None:
    def declared(x: "TensorLike", *rest: "Operand", axis: "Axis" = None, dtype: "DTypeLike | None" = None) -> "Tensor":  # type: ignore[name-defined]  # noqa: F821
        ...

    spec = OpSpec("declared", declared)  # type: ignore[arg-type]
    assert [(p.name, p.role) for p in spec.parameters] == [
        ("x", "TensorLike"),
        ("rest", "Operand"),
        ("axis", "Value"),
        ("dtype", "DTypeLike"),
    ]
    assert [p.keyword_only for p in spec.parameters] == [False, False, True, True]
    assert spec.parameters[1].variadic
    assert spec.parameters[0].default is EMPTY
    assert spec.parameters[3].optional
    assert not spec.composite


def test_a_real_body_is_a_composite() -> None:
    def with_body(x: int) -> int:
        """Documented."""
        return x

    def documented(x: int) -> None:
        """Documented."""

    assert OpSpec("with_body", with_body).composite  # type: ignore[arg-type]
    assert not OpSpec("documented", documented).composite  # type: ignore[arg-type]


def test_a_name_is_declared_once() -> None:
    def sin(x: int) -> int:
        return x

    with pytest.raises(ValueError, match="op 'sin' is declared in"):
        register("sin", sin)  # type: ignore[arg-type]


def test_every_op_is_documented() -> None:
    undocumented = [name for name, spec in OPS.items() if not (spec.declared.__doc__ or "").strip()]
    assert not undocumented


def test_aliases_are_the_op_itself() -> None:
    for name, target in ALIASES.items():
        if hasattr(ops, name):
            assert getattr(ops, name) is OPS[target].function


def test_op_spec_prints_what_it_is() -> None:
    assert repr(OPS["sin"]) == "OpSpec('sin', primitive, category='elementary')"
