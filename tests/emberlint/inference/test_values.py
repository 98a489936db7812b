"""Inferred values: the join of the values of several paths, elements, and containers."""

import itertools

import pytest

from emberlint.config.tiers import Tier
from emberlint.inference.values import (
    NONE,
    NUMBER,
    OPAQUE,
    STRING,
    Imported,
    Mapping,
    Sequence,
    Tensor,
    Value,
    are_equal_values,
    element_of,
    holds_tensor,
    join,
    join_all,
)

SURE, CARRIED, CUSTOM = (Tensor(tier, "seen") for tier in (Tier.A, Tier.B, Tier.C))
SOME: list[Value] = [SURE, CUSTOM, NUMBER, STRING, NONE, None, Sequence(NUMBER), Sequence(SURE), Mapping({"a": SURE})]


@pytest.mark.parametrize("left, right", [*itertools.product(SOME, SOME)])
def test_join_is_symmetric(left: Value, right: Value) -> None:
    assert are_equal_values(join(left, right), join(right, left))


@pytest.mark.parametrize("value", SOME)
def test_join_with_itself_and_with_none_changes_nothing(value: Value) -> None:
    assert are_equal_values(join(value, value), value)
    assert are_equal_values(join(value, NONE), value) or value is None


@pytest.mark.parametrize(
    "left, right, expected",
    [
        (SURE, CUSTOM, SURE),
        (SURE, NUMBER, SURE),
        (SURE, None, SURE),
        (NUMBER, STRING, OPAQUE),
        (NUMBER, None, None),
        (Imported("a"), NUMBER, None),
    ],
)
def test_the_join_of_two_values(left: Value, right: Value, expected: Value) -> None:
    assert join(left, right) is expected


def test_join_with_a_container_gives_a_container() -> None:
    assert isinstance(join(SURE, Sequence(NUMBER)), Sequence)


def test_join_of_sequences_of_equal_length_joins_each_item() -> None:
    both = join(Sequence(items=[SURE, NUMBER]), Sequence(items=[NUMBER, NUMBER]))
    assert isinstance(both, Sequence)
    assert both.items == [SURE, NUMBER]
    longer = join(both, Sequence(items=[SURE]))
    assert isinstance(longer, Sequence)
    assert longer.items is None
    assert longer.element is SURE


def test_a_carried_tensor_has_at_most_tier_b() -> None:
    assert SURE.pass_on("bound").tier is Tier.B
    assert CUSTOM.pass_on("bound").tier is Tier.C
    assert SURE.pass_on("bound").via is SURE


def test_the_element_of_a_value() -> None:
    assert isinstance(element_of(SURE), Tensor)
    assert element_of(Sequence(NUMBER)) is NUMBER
    assert element_of(STRING) is STRING
    assert element_of(OPAQUE) is None


def test_nested_containers_can_hold_a_tensor() -> None:
    nested: Value = SURE
    for _ in range(3):
        nested = Sequence(nested)
    assert holds_tensor(nested)
    assert not holds_tensor(Sequence(NUMBER))
    assert join_all([]) is NONE
