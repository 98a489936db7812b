"""Many cases in one test: all run, and the error has those of all that fail."""

import inspect

import pytest

from tests.together import together


def test_the_error_has_those_of_all_cases_that_fail() -> None:
    seen = []

    @pytest.mark.usefixtures("tmp_path")
    @together("a, b", [(1, "one"), pytest.param(2, "two", id="the second"), (3, "three"), (4, "four")])
    def test(b: str, fixture: int, a: int) -> None:
        seen.append((a, b, fixture))
        assert a != 1
        if a == 2:
            raise ValueError(b)
        if a == 3:
            pytest.skip("left out")

    assert list(inspect.signature(test).parameters) == ["fixture"]
    assert [mark.name for mark in test.pytestmark] == ["usefixtures"]  # type: ignore[attr-defined]
    with pytest.raises(ExceptionGroup, match="2 of 4 cases fail: 1-one, the second") as caught:
        test(fixture=7)
    assert seen == [(1, "one", 7), (2, "two", 7), (3, "three", 7), (4, "four", 7)]
    assert [type(error) for error in caught.value.exceptions] == [AssertionError, ValueError]
    assert caught.value.exceptions[1].__notes__ == ["in the case the second"]


def test_a_test_is_skipped_if_all_its_cases_are() -> None:
    @together("a", [1, 2])
    def test(a: int) -> None:
        pytest.skip(f"no {a}")

    with pytest.raises(pytest.skip.Exception, match="no 1"):
        test()
