"""The pytest plugin: a fixture that runs a test on every backend, the option that chooses them, and two marks.

Every run of pytest loads the plugin if the package is installed, so heavy modules are imported only inside functions.
"""

from collections.abc import Iterator

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--ember-backend`."""
    parser.getgroup("emberharmony").addoption(
        "--ember-backend",
        metavar="NAME[,NAME]",
        help="run tests that use the fixture ember_backend on these backends (default: all that are installed)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marks, so that `--strict-markers` accepts them."""
    for mark, does in (("ember_skip", "skip"), ("ember_xfail", "expect the failure of")):
        config.addinivalue_line("markers", f"{mark}(backend, reason): {does} a test with ember_backend on this backend")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrizes tests that use `ember_backend`, with a skip or an expected failure where a mark asks for it."""
    if "ember_backend" not in metafunc.fixturenames:
        return
    skipped = _reasons(metafunc.definition, "ember_skip")
    failing = _reasons(metafunc.definition, "ember_xfail")
    metafunc.parametrize(
        "ember_backend",
        [
            pytest.param(
                name,
                marks=[
                    *(pytest.mark.skip(reason=reason) for reason in skipped.get(name, ())),
                    *(pytest.mark.xfail(reason=reason) for reason in failing.get(name, ())),
                ],
            )
            for name in chosen(metafunc.config)
        ],
        indirect=True,
    )


def chosen(config: pytest.Config) -> list[str]:
    """Returns the names of the backends to test on.

    Raises:
        pytest.UsageError: if a backend is unknown or not installed.
    """
    from emberharmony.backend.discovery import backend_names, create_backend, is_installed
    from emberharmony.core.errors import EmberError

    given = config.getoption("--ember-backend")
    if not given:
        return [name for name in backend_names() if is_installed(name)]
    names = [name.strip() for name in given.split(",")]
    for name in names:
        try:
            create_backend(name, fallback=None)
        except EmberError as error:
            raise pytest.UsageError(f"--ember-backend: {error}") from error
    return names


def _reasons(item: pytest.Item | pytest.Function, mark: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for given in item.iter_markers(mark):
        backend, reason = _arguments(mark, *given.args, **given.kwargs)
        found.setdefault(backend, []).append(reason)
    return found


def _arguments(mark: str, backend: str = "", reason: str = "") -> tuple[str, str]:
    from emberharmony.backend.discovery import backend_names
    from emberharmony.core.errors import suggest

    if not backend or not reason:
        raise pytest.UsageError(f"{mark} needs a backend and a reason: @pytest.mark.{mark}('mlx', reason='…')")
    known = backend_names()
    if backend not in known:
        raise pytest.UsageError(
            f"{mark}: no backend is named {backend!r}{suggest(str(backend), known)} (known: {', '.join(known)})"
        )
    return backend, reason


@pytest.fixture
def ember_backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Activates a backend, yields its name, and restores the former one; parametrized over the installed backends."""
    from emberharmony import ops

    before = ops.get_backend()
    ops.set_backend(request.param)
    yield request.param
    ops.set_backend(before)
