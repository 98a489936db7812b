"""Many cases in one test: all run, and the error has those of all that fail."""

import inspect

import pytest

from tests import sampling
from tests.together import together


def test_the_error_has_those_of_all_cases_that_fail() -> None:
    seen = []

    @pytest.mark.usefixtures("tmp_path")
    @together("a, b", [(1, "one"), pytest.param(2, "two", id="the second"), (3, "three"), (4, "four"), (5, len)])
    def test(b: str, fixture: int, a: int) -> None:
        seen.append((a, b, fixture))
        assert a != 1
        if a == 2:
            raise ValueError(b)
        if a == 3:
            pytest.skip("left out")
        if a == 5:
            pytest.fail("no")

    assert list(inspect.signature(test).parameters) == ["fixture"]
    assert [mark.name for mark in test.pytestmark] == ["usefixtures"]  # type: ignore[attr-defined]
    with pytest.raises(
        BaseExceptionGroup, match="3 of 5 cases fail: 1-one, the second, 5-<built-in function len>"
    ) as caught:
        test(fixture=7)
    assert [a for a, _, fixture in seen if fixture == 7] == [1, 2, 3, 4, 5]
    assert [type(error) for error in caught.value.exceptions] == [AssertionError, ValueError, pytest.fail.Exception]
    assert caught.value.exceptions[1].__notes__ == ["in the case the second"]


def test_a_test_is_skipped_if_all_its_cases_are() -> None:
    @together("a", [1, 2])
    def test(a: int) -> None:
        pytest.skip(f"no {a}")

    with pytest.raises(pytest.skip.Exception, match="no 1"):
        test()


def test_a_run_tries_a_share_of_the_cases_on_other_backends_than_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "WHOLE", False)
    seen: list[tuple[str, int]] = []

    @together("a", range(8), share=4)
    def test(backend: str, a: int) -> None:
        seen.append((backend, a))

    for backend in ("numpy", "mlx"):
        test(backend=backend)
    assert [a for backend, a in seen if backend == "numpy"] == [*range(8)]
    assert len([a for backend, a in seen if backend == "mlx"]) == 2
