"""Plugin of pytest: SciPy's tests of the array API run on the namespace that EMBERHARMONY_SUITE names."""

import importlib
import os
from typing import Any

import pytest

XP = importlib.import_module(os.environ["EMBERHARMONY_SUITE"])
# The tests take float64 for the default of every library, and for what integers become in functions of floats.
XP.set_default_float("float64")


@pytest.hookimpl(tryfirst=True)
def pytest_plugin_registered(plugin: Any) -> None:
    """Gives the fixture `xp` of SciPy's conftest the namespace in the place of those that SciPy knows."""
    if getattr(plugin, "__name__", "") in ("conftest", "scipy.conftest") and hasattr(plugin, "xp_known_backends"):
        plugin.xp_known_backends.add(XP.__name__)
        marker = plugin.xp._fixture_function_marker
        namespace_parameter = pytest.param(XP, id=XP.__name__, marks=pytest.mark.array_api_backends)
        object.__setattr__(marker, "params", (namespace_parameter,))
        object.__setattr__(marker, "ids", None)
