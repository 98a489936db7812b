"""Plugin of pytest: SciPy's tests of the array API run on the namespace that EMBERHARMONY_SUITE names."""

import importlib
import os
from typing import Any

import pytest

XP = importlib.import_module(os.environ["EMBERHARMONY_SUITE"])
XP.set_default_float("float64")  # the tests take it for the default of every library


@pytest.hookimpl(tryfirst=True)
def pytest_plugin_registered(plugin: Any) -> None:
    """Gives the fixture `xp` of SciPy's conftest the namespace in the place of those that SciPy knows."""
    if getattr(plugin, "__name__", "") in ("conftest", "scipy.conftest") and hasattr(plugin, "xp_known_backends"):
        plugin.xp_known_backends.add(XP.__name__)
        marker = plugin.xp._fixture_function_marker
        given = pytest.param(XP, id=XP.__name__, marks=pytest.mark.array_api_backends)
        object.__setattr__(marker, "params", (given,))
        object.__setattr__(marker, "ids", None)
