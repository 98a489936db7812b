"""Presets: what they find, and how a project's own settings and the option add to them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from emberlint.cli import main
from emberlint.config.configuration import load_settings, settings_from_table
from emberlint.config.errors import UsageError
from emberlint.config.presets import PRESETS
from emberlint.config.settings import Role, Settings
from emberlint.run.engine import check_texts
from emberlint.run.registry import chosen_codes

ROOT = Path("/nowhere")
LOSS = """
from keras.src import backend, ops
from keras.src.losses.loss import Loss

class Squared(Loss):
    def call(self, y_true, y_pred):
        return ops.mean((y_true - y_pred) ** 2)

def clipped(x):
    return backend.numpy.clip(x, 0, 1) + 1
"""
STANDARD = """
from array_api_compat import array_namespace

def f(x, *, xp=None):
    xp = xp or array_namespace(x)
    y = xp.exp(x) + 1
    y[0] = 1.0
    return float(xp.sum(y)) if y.shape else xp.float64

def g(x, xp):
    xp, _ = (xp, None) if xp else get_namespace(x)
    return xp.sin(x).item()

def h(x):
    import numpy as xp
    return xp.sin(x)
"""


def found(text: str, preset: str, path: str = "library/m.py") -> list[str]:
    settings = settings_from_table({}, ROOT, preset or None)
    report = check_texts({path: text}, settings, chosen_codes(settings.select, settings.ignore))
    return [f"{one.line}:{one.code}" for one in report.findings]


def test_keras_finds_operators_in_the_code_of_keras() -> None:
    assert found(LOSS, "keras") == ["7:EMB201", "7:EMB201", "10:EMB201"]
    assert found(LOSS, "") == []
    host = "import numpy as np\nx = np.ones(3)\n"
    for path in ("keras/src/datasets/mnist.py", "keras/src/backend/openvino/math.py", "keras/src/testing/cases.py"):
        assert found(host, "keras", path) == []
    assert found(host, "keras", "keras/src/layers/dense.py") == ["1:EMB101", "2:EMB102"]


PROGRAM = """
from emberharmony import ops

x = ops.array([[1.0, 2.0], [3.0, 4.0]])
count = ops.arange(2)
y = x @ x - 0.1
z = x * count
x += 1.0
small = y < x
"""


def test_application_allows_operators_that_are_safe_and_strict_none() -> None:
    every = ["6:EMB201", "6:EMB201", "7:EMB201", "8:EMB201", "9:EMB202"]
    assert found(PROGRAM, "strict") == found(PROGRAM, "") == every
    assert found(PROGRAM, "application") == ["7:EMB201", "8:EMB201"]


def test_array_api_knows_the_namespace_by_its_name() -> None:
    assert found(STANDARD, "array-api") == ["7:EMB205", "8:EMB204", "12:EMB204", "15:EMB101", "16:EMB102"]
    assert found(STANDARD, "") == ["15:EMB101", "16:EMB102"]


def test_a_project_changes_and_extends_its_preset() -> None:
    table = {
        "preset": "keras",
        "backends": ["numpy"],
        "ignore": ["EMB105"],
        "roles": {"frontend": ["**/saving/**"], "test": ["checks/**"]},
    }
    settings = settings_from_table(table, ROOT)
    assert settings.preset == "keras"
    assert settings.backends == ("numpy",)
    assert settings.namespaces == tuple(PRESETS["keras"]["namespaces"])  # type: ignore[arg-type]
    assert settings.role("library/saving/a.py") == Role("frontend")
    assert settings.role("library/export/a.py") == Role("script")
    assert settings.role("checks/a.py") == Role("test")
    assert settings.role("backend/numpy/a.py") == Role("backend", "numpy")
    other = settings_from_table(table, ROOT, "array-api")
    assert other.preset == "array-api"
    assert other.ignore == ("EMB105", "EMB201", "EMB202")
    assert other.namespace_names == ("xp",)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_valid_table(name: str) -> None:
    settings = settings_from_table({}, ROOT, name)
    assert settings.preset == name
    assert (settings == Settings(root=ROOT, preset=name)) is (name == "strict")
    assert chosen_codes(settings.select, settings.ignore)


def test_an_unknown_preset_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="unknown preset 'keras3'; did you mean 'keras'"):
        settings_from_table({"preset": "keras3"}, ROOT)


def test_the_option_wins(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.emberlint]\npreset = 'keras'\n")
    assert load_settings(tmp_path).preset == "keras"
    shown = CliRunner().invoke(main, ["--show-settings", "--preset", "array-api", str(tmp_path)])
    assert json.loads(shown.stdout)["preset"] == "array-api"
