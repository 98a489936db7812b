"""`Formula`, the class of schedules: a function of the number of steps that prints as the call that made it."""

from collections.abc import Callable
from functools import partial, wraps
from typing import ParamSpec

from emberharmony.core.errors import brief
from emberharmony.optim.numbers import Number

P = ParamSpec("P")


class Formula(partial[Number]):
    """A schedule that shows the call that made it, such as `cosine(0.1, T_max=100)`."""

    call: str

    def __repr__(self) -> str:
        return self.call


def keep_call_text(make: Callable[P, Callable[[Number], Number]]) -> Callable[P, Callable[[Number], Number]]:
    """Wraps a function that makes schedules, so that each schedule keeps the text of its call for `repr`.

    Args:
        make: returns a `Formula`.
    """

    @wraps(make)
    def schedule(*args: P.args, **options: P.kwargs) -> Callable[[Number], Number]:
        formula = make(*args, **options)
        argument_texts = [*map(brief, args), *(f"{name}={brief(value)}" for name, value in options.items())]
        vars(formula)["call"] = f"{make.__name__}({', '.join(argument_texts)})"
        return formula

    return schedule
