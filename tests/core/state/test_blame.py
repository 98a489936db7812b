"""Tests which exceptions come from the caller's code and which from the library."""

import contextlib
import json
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend import current
from emberharmony.core.state.blame import passed_through_caller


def raised(call: Callable[[], object]) -> BaseException:
    """Returns the exception that a call raises, without this module's own frames in its traceback."""
    with pytest.raises(Exception) as caught:
        call()
    error = caught.value
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    return error.with_traceback(traceback)


def test_an_exception_of_the_library_or_its_array_package_is_not_the_callers(backend: str) -> None:
    assert not passed_through_caller(raised(lambda: ops.sum([1.0], axis=5)), current())
    assert not passed_through_caller(raised(lambda: np.linalg.inv(np.ones(3))), current()) or backend != "numpy"


def test_every_folder_of_the_package_counts_as_the_library() -> None:
    foreign = type("Foreign", (), {"tensor_type": np.ndarray, "__module__": "json"})()
    with ops.use_backend("numpy"):
        assert not passed_through_caller(raised(lambda: ops.sum([1.0], axis=5)), foreign)


def test_an_exception_that_passed_through_other_code_is_the_callers(backend: str) -> None:
    error = raised(lambda: ops.map(lambda x: 1 / 0, [1.0]))
    assert passed_through_caller(error, current())
    assert passed_through_caller(raised(lambda: ops.map(lambda x: np.linalg.inv(np.ones(3)), [1.0])), current())


def test_frames_of_the_standard_library_do_not_count(backend: str) -> None:
    @contextlib.contextmanager
    def opened() -> Iterator[None]:
        yield

    assert not passed_through_caller(raised(lambda: json.loads("{")), current())
    with pytest.raises(ZeroDivisionError) as caught, opened():
        1 / 0
    assert passed_through_caller(caught.value, current())
