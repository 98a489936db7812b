"""Deprecated names still work, and warn with their successors at the line of the caller."""

import warnings
from typing import Any

import pytest

from emberharmony import ops
from emberharmony.core.errors import ArgumentTypeError
from emberharmony.core.names import deprecation
from emberharmony.core.names.deprecation import deprecated, renamed_parameters


@deprecated("use clip", since="1.2")
def limit(x: int, *, upper: int = 3) -> int:
    """Returns the lesser."""
    return min(x, upper)


@deprecated("use Net", since="1.2")
class OldNet:
    def __init__(self, size: int) -> None:
        self.size = size


class Derived(OldNet):
    pass


@renamed_parameters(since="1.3", dim="axis", keepdim="keepdims")
def total(x: Any, axis: int | None = None, keepdims: bool = False) -> tuple[Any, int | None, bool]:
    return x, axis, keepdims


def test_a_deprecated_function_works_and_warns_at_the_line_of_the_caller() -> None:
    with pytest.warns(DeprecationWarning, match=r"^limit is deprecated since version 1.2: use clip$") as caught:
        assert limit(5, upper=4) == 4
    assert [warning.filename for warning in caught] == [__file__]
    assert (limit.__name__, limit.__doc__) == ("limit", "Returns the lesser.")
    assert limit.__deprecated__.endswith("use clip")  # type: ignore[attr-defined]


def test_a_deprecated_class_warns_when_an_instance_is_made_but_not_for_a_class_derived_from_it() -> None:
    with pytest.warns(DeprecationWarning, match="OldNet is deprecated") as caught:
        made = OldNet(3)
    assert (made.size, type(made), isinstance(made, OldNet)) == (3, OldNet, True)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Derived(4).size == 4


def test_the_old_keyword_of_a_parameter_works_and_warns() -> None:
    with pytest.warns(DeprecationWarning, match="the parameter 'dim' of total is deprecated since version 1.3"):
        assert total(1, dim=2) == (1, 2, False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert total(1, 2, keepdims=True) == (1, 2, True)


def test_both_names_of_a_parameter_are_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="both 'axis' and its old name 'dim'"):
        total(1, axis=0, dim=0)


@pytest.mark.parametrize(("space", "old", "new"), [("", "old_sine", "sin"), ("linalg", "old_norm", "norm")], ids=str)
def test_an_old_name_of_an_op_works_and_warns(monkeypatch: pytest.MonkeyPatch, space: str, old: str, new: str) -> None:
    monkeypatch.setitem(deprecation.RENAMED, f"{space}.{old}" if space else old, (new, "1.4"))
    module = getattr(ops, space) if space else ops
    with pytest.warns(DeprecationWarning, match=rf"{old} is deprecated since version 1.4: use {new}$") as caught:
        assert getattr(module, old) is getattr(module, new)
    assert [warning.filename for warning in caught] == [__file__]
    assert old not in dir(module)


def test_every_old_name_of_an_op_has_a_new_one() -> None:
    for old, (new, since) in deprecation.RENAMED.items():
        module = getattr(ops, old.rpartition(".")[0]) if "." in old else ops
        assert hasattr(module, new), old
        assert since[0].isdigit(), old
