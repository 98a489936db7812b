"""The pytest plugin: a fixture that runs a test on every backend, the option that chooses them, and two marks.

Every run of pytest loads the plugin if the package is installed, so heavy modules are imported only inside functions.
"""

from collections.abc import Iterator

import pytest

CHOSEN = pytest.StashKey[list[str]]()
FORMER = pytest.StashKey[str]()
"""The backend to restore while a finished test's backend is still active; else an empty string."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option `--ember-backend` to pytest, which names the backends to test on."""
    parser.getgroup("emberharmony").addoption(
        "--ember-backend",
        metavar="NAME[,NAME]",
        help="run tests that use the fixture ember_backend on these backends (default: all installed ones but jax and "
        "dask)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marks, so that `--strict-markers` accepts them."""
    for marker, effect_text in (("ember_skip", "skip"), ("ember_xfail", "expect the failure of")):
        config.addinivalue_line(
            "markers", f"{marker}(backend, reason): {effect_text} a test with ember_backend on this backend"
        )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrizes tests that use `ember_backend`, with a skip or an expected failure where a mark asks for it."""
    if "ember_backend" not in metafunc.fixturenames:
        return
    skip_reasons = _reasons_by_backend(metafunc.definition, "ember_skip")
    failure_reasons = _reasons_by_backend(metafunc.definition, "ember_xfail")
    metafunc.parametrize(
        "ember_backend",
        [
            pytest.param(
                name,
                marks=[
                    *(pytest.mark.skip(reason=reason) for reason in skip_reasons.get(name, ())),
                    *(pytest.mark.xfail(reason=reason) for reason in failure_reasons.get(name, ())),
                ],
            )
            for name in chosen_backends(metafunc.config)
        ],
        indirect=True,
    )


def chosen_backends(config: pytest.Config) -> list[str]:
    """Returns the names of the backends to test on.

    Raises:
        pytest.UsageError: if a backend is unknown or not installed.
    """
    if CHOSEN not in config.stash:  # a look for plugins takes 10 ms, and collection asks once for each test function
        config.stash[CHOSEN] = _backends_of_option(config.getoption("--ember-backend"))
    return config.stash[CHOSEN]


def _backends_of_option(option_text: str | None) -> list[str]:
    from emberharmony.backend.discovery import create_backend, usual_backend_names
    from emberharmony.core.errors import EmberError
    from emberharmony.core.types import BackendName

    if not option_text:
        return [*usual_backend_names()]
    given_names = [name.strip() for name in option_text.split(",")]
    for name in given_names:
        try:
            create_backend(BackendName(name), fallback=None)
        except EmberError as error:
            raise pytest.UsageError(f"--ember-backend: {error}") from error
    return given_names


def _reasons_by_backend(item: pytest.Item | pytest.Function, marker_name: str) -> dict[str, list[str]]:
    reasons_by_backend: dict[str, list[str]] = {}
    for marker in item.iter_markers(marker_name):
        backend, reason = _marker_arguments(marker_name, *marker.args, **marker.kwargs)
        reasons_by_backend.setdefault(backend, []).append(reason)
    return reasons_by_backend


def _marker_arguments(marker: str, backend: str = "", reason: str = "") -> tuple[str, str]:
    from emberharmony.backend.discovery import BUILTIN, backend_names
    from emberharmony.core.errors import suggest

    if not backend or not reason:
        raise pytest.UsageError(f"{marker} needs a backend and a reason: @pytest.mark.{marker}('mlx', reason='…')")
    if backend in BUILTIN:  # a look for plugins takes 40 ms
        return backend, reason
    known_backends = backend_names()
    if backend not in known_backends:
        raise pytest.UsageError(
            f"{marker}: no backend is named {backend!r}{suggest(str(backend), known_backends)} "
            f"(known: {', '.join(known_backends)})"
        )
    return backend, reason


@pytest.fixture
def ember_backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Activates a backend and yields its name; parametrized over the installed backends.

    The backend stays active until a test without this fixture begins, because a change of backend exchanges the code of
    each op that was called before, which takes milliseconds.
    """
    from emberharmony import ops

    config_stash = request.config.stash
    former_backend = config_stash.get(FORMER, "") or ops.get_backend()
    config_stash[FORMER] = ""
    _activate_backend(request.param)
    yield request.param
    config_stash[FORMER] = former_backend


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Restores the former backend before a test without `ember_backend`."""
    if "ember_backend" not in getattr(item, "fixturenames", ()):
        _restore_backend(item.config)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest) -> None:
    """Restores the former backend before a fixture that is set up earlier than `ember_backend`; pytest's need none."""
    if fixturedef.argname != "ember_backend" and not fixturedef.func.__module__.startswith("_pytest."):
        _restore_backend(request.config)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Restores the former backend, because the process may go on after a run of pytest."""
    _restore_backend(session.config)


def _restore_backend(config: pytest.Config) -> None:
    former_backend = config.stash.get(FORMER, "")
    if former_backend:
        config.stash[FORMER] = ""
        _activate_backend(former_backend)


def _activate_backend(name: str) -> None:
    """Makes a backend that of the process, unless it is and no override has made ops guarded: nothing would change."""
    from emberharmony import ops
    from emberharmony.core import selection
    from emberharmony.core.types import BackendName

    if ops.get_backend() != name or selection.backend_source() != "set_backend" or selection.is_overridden():
        ops.set_backend(BackendName(name))
