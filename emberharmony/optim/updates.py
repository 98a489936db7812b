"""Rules that work element by element, and the programs that they call."""

import operator
from collections.abc import Callable, Mapping
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from emberharmony.core.deferred import Deferred
from emberharmony.transforms.program import Number, Update

if TYPE_CHECKING:
    from emberharmony.transforms import recorder
    from emberharmony.transforms.recorder import RuleProgram
else:
    recorder = Deferred("emberharmony.transforms.recorder")

Rule = TypeVar("Rule", bound=Callable[..., Any])

_KERNELS: "WeakKeyDictionary[Callable[..., Any], str]" = WeakKeyDictionary()
_PYTHON = (int, float)
_UNRECORDED = ("params", "param_names", "lr")
"""The options that are no constants of a program."""


def elementwise(rule: Rule) -> Rule:
    """Declares that a rule, and `initial` of its optimizer, work element by element; a decorator.

    Small parameters are then computed as one vector, with the same bits and fewer calls.
    """
    _KERNELS[rule] = ""
    return rule


def computed_by(kernel: str) -> Callable[[Rule], Rule]:
    """Declares the same, and the name by which libraries may have a kernel for the rule; a decorator."""

    def declare(rule: Rule) -> Rule:
        _KERNELS[rule] = kernel
        return rule

    return declare


def is_elementwise(rule: Any) -> bool:
    """Returns whether a rule is declared to work element by element."""
    return rule in _KERNELS


class _Known(NamedTuple):
    """A recording with what it depends on.

    Attributes:
        chosen: returns the options that are constants of the program, in a tuple.
        number: how many options there are.
        options: these options.
        names: the names of the numbers in the state.
        given: the numbers that were given when it was made.
        recording: None if the rule has no program.
        tensors: the names of the tensors in the state that it makes.
    """

    chosen: Callable[[Mapping[str, Any]], Any]
    number: int
    options: Any
    names: list[str]
    given: list[Any]
    recording: "RuleProgram | None"
    tensors: list[str]

    def fits(self, hyper: Mapping[str, Any], given: list[Any]) -> bool:
        """Returns whether it is that of these options and numbers."""
        if self.number != len(hyper) or self.options != self.chosen(hyper):
            return False
        # A rule without a program for some numbers is not recorded again for others.
        return self.recording is None or bool(self.recording.given) or self.given == given


class Updates:
    """The programs that a rule calls for a group of parameters, which are recorded once for equal options.

    Args:
        rule: the rule.
    """

    def __init__(self, rule: Callable[..., Any]) -> None:
        self.rule, self._kernel = rule, _KERNELS.get(rule)
        self._known: dict[Any, _Known] = {}

    def update_for(self, state: Mapping[str, Any], hyper: Mapping[str, Any]) -> Update | None:
        """Returns what the rule computes in a step; None if it has no program.

        Args:
            state: the state of the parameters, in which anything but a number stands for tensors.
            hyper: the options for this step.
        """
        rate = hyper["lr"]
        if self._kernel is None or not isinstance(rate, _PYTHON):
            return None
        key = *state, *map(isinstance, state.values(), repeat(_PYTHON))
        known = self._known.get(key)
        names = [name for name, x in state.items() if isinstance(x, _PYTHON)] if known is None else known.names
        given = [*map(state.__getitem__, names), rate]
        if known is None or not known.fits(hyper, given):
            chosen = operator.itemgetter(*[name for name in hyper if name not in _UNRECORDED] or ["lr"])
            recording = recorder.record_rule(self.rule, state, hyper)
            tensors = [] if recording is None else [name for name, x in recording.made.items() if x is None]
            known = self._known[key] = _Known(chosen, len(hyper), chosen(hyper), names, given, recording, tensors)
        recording = known.recording
        if recording is None:
            return None
        try:
            made = recording.numbers(given)
        except (ArithmeticError, ValueError):
            return None  # the rule raises the same
        after = dict(recording.made)
        for name, x in recording.made.items():
            if x.__class__ is Number:
                after[name] = made[x]
        return Update(recording.program, made, self._kernel, hyper, state, after, known.tensors)
