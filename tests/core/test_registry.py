"""The registry reads declarations: parameters, their roles, primitive and composite ops."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.dispatch import op
from emberharmony.core.registry import ALIASES, EMPTY, NONE, OPS, Facts, OpSpec, facts_of, register


def test_a_declaration_gives_the_roles_and_defaults_of_its_parameters() -> None:
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


def test_an_op_with_a_body_is_composite_and_a_docstring_is_not_a_body() -> None:
    def with_body(x: int) -> int:
        """Documented."""
        return x

    def documented(x: int) -> None:
        """Documented."""

    assert OpSpec("with_body", with_body).composite  # type: ignore[arg-type]
    assert not OpSpec("documented", documented).composite  # type: ignore[arg-type]


def test_declaring_a_name_twice_raises() -> None:
    def sin(x: int) -> int:
        return x

    with pytest.raises(ValueError, match="op 'sin' is declared in"):
        register("sin", sin)  # type: ignore[arg-type]


def test_an_op_that_is_declared_again_has_its_new_parameters_and_body(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scaled_again(x: "TensorLike", factor: "Operand" = 2) -> "Tensor":  # type: ignore[name-defined]  # noqa: F821
        """Returns x times a number."""
        return ops.multiply(x, factor)

    first = scaled_again

    def scaled_again(x: "TensorLike", y: "TensorLike", offset: "Operand" = 3) -> "Tensor":  # type: ignore[name-defined, no-redef]  # noqa: F821
        """Returns the sum of two tensors and a number."""
        return ops.add(ops.add(x, y), offset)

    second = scaled_again
    monkeypatch.setitem(OPS, "scaled_again", OPS["sin"])
    monkeypatch.delitem(OPS, "scaled_again")
    declared: Any = op(first)  # type: ignore[arg-type]
    assert declared([1.0]).tolist() == [2.0]
    again: Any = op(second)
    for _ in range(2):
        assert again([1.0], [10.0]).tolist() == [14.0]
        assert again([1.0], y=[10.0], offset=0).tolist() == [11.0]
    with ops.use_backend("numpy"):
        assert again([1.0], [10.0]).tolist() == [14.0]


def test_every_op_is_documented() -> None:
    undocumented = [name for name, spec in OPS.items() if not (spec.declared.__doc__ or "").strip()]
    assert not undocumented


def test_an_alias_is_the_same_function_as_the_op() -> None:
    for name, target in ALIASES.items():
        if hasattr(ops, name):
            assert getattr(ops, name) is OPS[target].function


def test_the_repr_of_an_op_names_its_kind_and_category() -> None:
    assert repr(OPS["sin"]) == "OpSpec('sin', primitive, category='elementary')"


def test_a_declaration_says_facts_of_an_op() -> None:
    assert OPS["floor"].facts == Facts(elementwise=True, takes="real", gradient="zero", finite="yes")
    assert OPS["matmul"].facts == Facts(autocast="half")
    assert OPS["pad"].facts is NONE
    assert OPS["split"].facts is OPS["reshape"].facts
    assert OPS["exp"].facts is OPS["log"].facts


def test_facts_follow_from_each_other() -> None:
    assert OPS["less"].facts == Facts(True, takes="real", gives="bool", gradient="zero", finite="yes")
    assert OPS["gcd"].facts == Facts(True, takes="integer", gradient="zero", finite="yes")
    assert OPS["less"].facts.refuses == ("complex",)
    assert OPS["matmul"].facts.refuses == ()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"elemntwise": True}, "op 'wave' says the fact 'elemntwise'; the facts are elementwise, along, takes"),
        ({"gradient": "none"}, "op 'wave' says gradient='none'; it is 'zero', or left out"),
        ({"autocast": "float16"}, "op 'wave' says autocast='float16'; it is 'half' or 'float32', or left out"),
        ({"takes": "reals"}, "op 'wave' says takes='reals'; it is 'all' or 'numeric' or 'real' or"),
        ({"elementwise": False}, "op 'wave' says elementwise=False; it is True, or left out"),
    ],
)
def test_an_unknown_fact_is_refused(said: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        facts_of("wave", said)


def test_the_facts_of_an_op_that_is_declared_late_count(backend: str) -> None:
    @op(elementwise=True, gradient="zero", autocast="float32", finite="yes")
    def test_stairs(x: "TensorLike", width: float = 1.0) -> "Tensor":  # type: ignore[name-defined]  # noqa: F821
        seen.append((ops.shape(x), str(ops.dtype(x).name)))
        return ops.multiply(ops.floor(ops.divide(x, width)), width)

    seen: list[tuple[tuple[int, ...], str]] = []
    try:
        x = ops.array([[0.5, 1.5], [2.5, 3.5]])
        assert ops.vmap(test_stairs)(x).tolist() == [[0.0, 1.0], [2.0, 3.0]]
        assert ops.grad(lambda x: ops.sum(test_stairs(x)))(x).tolist() == [[0.0, 0.0], [0.0, 0.0]]
        seen.clear()
        with ops.autocast("bfloat16"):
            assert test_stairs(ops.cast(x, "bfloat16"), 2.0).tolist() == [[0.0, 0.0], [2.0, 2.0]]
        assert seen == [((2, 2), "float32")]
    finally:
        del OPS["test_stairs"]


def test_an_op_that_is_declared_late_is_mapped_by_what_it_says_to_work_along() -> None:
    @op(along="axis")
    def test_reversed(x: "TensorLike", axis: int = 0) -> "Tensor":  # type: ignore[name-defined]  # noqa: F821
        shapes.append(ops.shape(x))
        return ops.flip(x, axis)

    shapes: list[tuple[int, ...]] = []
    try:
        with ops.use_backend("numpy"):
            assert ops.vmap(test_reversed)(np.arange(6.0).reshape(3, 2)).tolist() == [[1, 0], [3, 2], [5, 4]]
        assert shapes == [(3, 2)]
    finally:
        del OPS["test_reversed"]


def test_only_bodies_read_values() -> None:
    assert [name for name, spec in OPS.items() if spec.facts.reads and not spec.composite] == []
