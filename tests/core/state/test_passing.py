"""Where a backend catches an error of its library to go another way, an error of a watcher passes unchanged."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import errors, ops
from emberharmony.backend import discovery
from emberharmony.core.state import settings


class WatcherError(RuntimeError):
    """An error of a watcher of the calls, which backends must not take for one of their library."""

    of_watcher = True


def read_of_exporter() -> Any:
    class Exporter:
        def __dlpack__(self, **options: Any) -> Any:
            raise AssertionError

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    return ops.from_dlpack(Exporter())


X = np.ones((2, 3), np.float32)
AT = np.zeros((2, 1), np.int64)
# By backend: the native function that raises an error, and a call that uses it.
CASES: list[tuple[str, str, str, Callable[[], Any]]] = [
    ("torch", "torch", "gather", lambda: ops.take_along_axis(ops.asarray(X), ops.asarray(AT))),
    (
        "torch",
        "emberharmony.backend.torch.arrays.indices",
        "index_select",
        lambda: ops.take(ops.asarray(X), ops.asarray(AT)),
    ),
    ("torch", "torch:Tensor", "numpy", lambda: ops.to_numpy(ops.asarray(X))),
    ("torch", "torch:Tensor", "any", lambda: ops.solve_triangular(ops.asarray(np.eye(2, dtype="f4")), ops.asarray(X))),
    ("torch", "torch:Tensor", "scatter", lambda: ops.put_along_axis(ops.asarray(X), ops.asarray(AT), ops.asarray(AT))),
    ("torch", "torch:Tensor", "scatter", lambda: ops.put_along_axis(X.tolist(), ops.asarray(AT), 5.0)),
    ("torch", "torch:Tensor", "numpy", lambda: ops.to_numpy(ops.ones((2, 3), "bfloat16"))),
    ("mlx", "numpy", "from_dlpack", read_of_exporter),
    ("jax", "numpy", "from_dlpack", read_of_exporter),
]


@pytest.mark.parametrize(("name", "place", "function", "call"), CASES, ids=[f"{c[0]}-{c[2]}" for c in CASES])
def test_an_error_of_a_watcher_passes(
    name: str, place: str, function: str, call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if name not in ops.available_backends():
        pytest.skip(f"{name} is not installed")

    def raises(*args: Any, **kwargs: Any) -> Any:
        raise WatcherError("seen")

    module, _, cls = place.partition(":")
    with ops.use_backend(name):
        owner = getattr(importlib.import_module(module), cls) if cls else importlib.import_module(module)
        with monkeypatch.context() as patched:
            patched.setattr(owner, function, raises)
            with pytest.raises(WatcherError, match="seen"):
                call()


def test_an_import_of_a_backend_that_times_out_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*args: Any) -> Any:
        raise TimeoutError("too slow")

    monkeypatch.setattr(discovery.importlib, "import_module", slow)
    with pytest.raises(TimeoutError, match="too slow"):
        discovery._construct_backend("numpy")


@pytest.mark.parametrize("passes", [True, False])
def test_an_import_error_of_a_plugin_is_explained_unless_it_passes(
    passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Point:
        value = "plugin:make"

        def load(self) -> Any:
            error = ImportError("no module")
            if passes:
                error.of_watcher = True  # type: ignore[attr-defined]
            raise error

    monkeypatch.setattr(discovery, "_plugins", lambda: {"odd": Point()})
    with pytest.raises(ImportError) as caught:
        discovery._construct_backend("odd")
    assert isinstance(caught.value, errors.BackendUnavailableError) != passes
    if not passes:
        assert "'odd' of plugin:make cannot be imported: no module" in str(caught.value)


def test_a_settings_file_that_times_out_is_not_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*args: Any) -> Any:
        raise TimeoutError("too slow")

    monkeypatch.setattr(settings, "exists", lambda: True)
    monkeypatch.setattr(settings, "_file_text", slow)
    with pytest.raises(TimeoutError, match="too slow"):
        settings.read("backend")
