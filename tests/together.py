"""Many short cases in one test, because pytest takes longer for a test than most of them do."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from emberharmony.backend.shared.random_streams import start_streams
from tests.sampling import SEED, portion

Test = Callable[..., None]


def together(names: str, cases: Iterable[Any], share: int = 1) -> Callable[[Test], Test]:
    """Gives a test all cases in turn, where `pytest.mark.parametrize` would make a test of each.

    The test fails after its last case, with the errors of all that failed; a note names the case of each.

    Args:
        names: the parameters of the test that a case gives, with commas between them.
        cases: a value for each case; for several parameters a tuple of values, or a `pytest.param`.
        share: a run tries one of so many cases on each backend but NumPy.
    """
    parameters = [name.strip() for name in names.split(",")]
    listed = [_named(case, len(parameters), f"case {at}") for at, case in enumerate(cases)]
    assert listed, "there is no case"

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def whole(**fixtures: Any) -> None:
            errors: list[BaseException] = []
            skipped: list[str] = []
            chosen = portion(listed, share) if fixtures.get("backend", "numpy") != "numpy" else listed
            for label, values in chosen:
                start_streams(SEED)
                try:
                    test(**fixtures, **dict(zip(parameters, values, strict=True)))
                except pytest.skip.Exception as skip:
                    skipped.append(str(skip))
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  (the other cases are tried too)
                    error.add_note(f"in the case {label}")
                    errors.append(error)
            if errors:
                failed = ", ".join(error.__notes__[-1].removeprefix("in the case ") for error in errors)
                raise BaseExceptionGroup(f"{len(errors)} of {len(chosen)} cases fail: {failed}", errors)
            if len(skipped) == len(chosen):
                pytest.skip(skipped[0])

        signature = inspect.signature(test)
        kept = [each for name, each in signature.parameters.items() if name not in parameters]
        whole.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return whole

    return decorate


def _named(case: Any, count: int, otherwise: str) -> tuple[str, tuple[Any, ...]]:
    """Returns the name of a case and its values."""
    if isinstance(case, type(pytest.param())):
        values, name = tuple(case.values), case.id
    else:
        values, name = (case,) if count == 1 else tuple(case), ""
    spelled = "-".join(value if isinstance(value, str) else f"{value!r:.60}" for value in values)
    return name or (otherwise if " at 0x" in spelled else spelled), values
