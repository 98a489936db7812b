"""Where a description of a parameter comes from, and how the docstring looks that has all of them."""

import inspect
from typing import Any

import pytest

from emberharmony.core.docstrings.completion import complete_docstring, descriptions, parameters_of
from emberharmony.core.docstrings.docstring import docstring
from emberharmony.core.registry import Facts, OpSpec
from emberharmony.core.types import Axis, Operand, Tensor, TensorLike


def declared(x: "TensorLike", axis: "Axis" = None, keepdims: "bool" = False, scale: "float" = 2.0) -> "Tensor":  # type: ignore[empty-body]
    """Returns the scaled sum.

    Args:
        scale: the factor of the sum; it has
            a second line.

    Raises:
        AxisError: if an axis is out of range.

    Example:
        >>> 1
        1
    """


COMPLETE = """\
Returns the scaled sum.

Args:
    axis: the axis or the axes to reduce, from -ndim to ndim - 1; None, the default, reduces all of them.
    keepdims: whether the reduced axes stay, with length 1, so that the result broadcasts against `x`. Default:
        False.
    scale: the factor of the sum; it has a second line. Default: 2.0.

Raises:
    AxisError: if an axis is out of range.

Example:
    >>> 1
    1"""


def test_shared_texts_and_defaults_stand_between_the_lines_of_the_docstring() -> None:
    assert complete_docstring(OpSpec("declared", declared)) == COMPLETE  # type: ignore[arg-type]


def test_what_an_operand_may_be_follows_from_the_facts() -> None:
    def divide(x1: Operand, x2: Operand) -> Tensor:  # type: ignore[empty-body]
        """Returns the quotient."""

    spec = OpSpec("divide", divide, Facts(elementwise=True, takes="real", gives="float"))  # type: ignore[arg-type]
    text = "a tensor or number, which broadcasts against `x1`. Booleans, integers or floats; integers become the"
    assert descriptions(spec)["x2"] == f"{text} default float."
    assert complete_docstring(spec).startswith(
        "Returns the quotient.\n\nArgs:\n    x1: a tensor or number, which broadcasts"
    )
    assert descriptions(OpSpec("divide", divide)) == {}  # type: ignore[arg-type]


class Base:
    """A layer.

    Args:
        size: the number of features.
        rng: draws the weights.
    """

    def __init__(self, size: int, rng: Any = None, **options: Any) -> None: ...

    def call(self, x: Any) -> None:
        """Calls it.

        Args:
            x: (batch, features).
        """


class Derived(Base):
    """Another layer.

    Args:
        size: the number of channels.
    """

    def call(self, x: Any, mode: str = "fast") -> None:
        """Calls it otherwise."""

    @staticmethod
    def made(count: int) -> None:
        """Makes some.

        Args:
            *count: how many of them.
        """


def test_a_class_and_a_method_inherit_descriptions() -> None:
    assert descriptions(Derived) == {
        "size": "the number of channels.",
        "rng": "draws the weights. None makes a generator whose seed is drawn from the default stream.",
    }
    assert descriptions((Derived, "call")) == {"x": "(batch, features)."}
    assert descriptions((Derived, "made")) == {"count": "how many of them."}
    assert [p.name for p in parameters_of(Derived)] == ["size", "rng", "options"]
    assert [p.name for p in parameters_of((Derived, "call"))] == ["x", "mode"]


def test_a_class_without_a_signature_keeps_its_docstring() -> None:
    assert parameters_of(type) == ()
    assert complete_docstring(Exception) == inspect.cleandoc(Exception.__doc__ or "")


def test_none_is_said_to_be_the_default_unless_the_text_says_what_it_does() -> None:
    def function(a: int | None = None, b: int | None = None, c: Any = print) -> None:
        """Does nothing.

        Args:
            a, b: a number.
            c: a function.
        """

    assert descriptions(function) == {
        "a": "a number. Default: None.",
        "b": "a number. Default: None.",
        "c": "a function.",
    }


@pytest.mark.parametrize("read", [str, inspect.cleandoc, lambda text: text.expandtabs()])
def test_readers_of_a_docstring_get_it_complete(read: Any) -> None:
    text = docstring(Derived.__doc__, Derived)
    assert text == Derived.__doc__
    assert "rng: draws the weights." in read(text)
    assert docstring(None, Derived) is None


class Referring:
    """A metric.

    Args:
        size: see `Base`.
        other: see `Nobody`.
        x: see `Base.call`.
        absent: see `Base.absent.absent`.
    """

    def __init__(self, size: int, other: int, x: int, absent: int) -> None: ...

    @classmethod
    def made(cls, size: int) -> None:
        """Makes one."""


class Held:
    """A record.

    Args:
        bias: whether there is one.

    Attributes:
        size: the number of rows.
        bias: (rows,), or None.
    """

    def __init__(self, size: int, bias: bool) -> None: ...


def test_a_reference_is_followed_and_other_constructors_take_the_same() -> None:
    assert descriptions(Referring) == {
        "size": "the number of features.",
        "other": "see `Nobody`.",
        "x": "(batch, features).",
        "absent": "see `Base.absent.absent`.",
    }
    assert descriptions((Referring, "made")) == {"size": "the number of features."}


def test_a_loss_has_the_options_of_its_function() -> None:
    class Scaled:
        """A loss."""

        @staticmethod
        def function(scale: float) -> None:
            """Returns the loss.

            Args:
                scale: the factor.
            """

        def __init__(self, scale: float) -> None: ...

    assert descriptions(Scaled) == {"scale": "the factor."}
    Scaled.function = None  # type: ignore[assignment]
    assert descriptions(Scaled) == {}


def test_what_is_an_attribute_is_described_there() -> None:
    assert descriptions(Held) == {"size": "the number of rows.", "bias": "whether there is one."}
    assert complete_docstring(Held) == inspect.cleandoc(Held.__doc__ or "")
