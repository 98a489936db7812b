"""`[tool.emberlint]`: the settings that are read, and the errors for wrong values."""

from pathlib import Path

import pytest

from emberlint.config.configuration import find_root, load_settings, settings_from_table
from emberlint.config.errors import UsageError
from emberlint.config.settings import Contract, Role, Settings
from emberlint.config.tiers import Tier

ROOT = Path("/nowhere/project")


def test_an_empty_table_gives_the_defaults() -> None:
    assert settings_from_table({}, ROOT) == Settings(root=ROOT)


def test_every_key_is_read() -> None:
    settings = settings_from_table(
        {
            "preset": "array-api",
            "src": ["one/src", "./two/"],
            "target-version": "py311",
            "select": ["EMB1"],
            "extend-select": ["EMB2"],
            "ignore": ["backend-import"],
            "min-tier": "C",
            "backends": ["numpy"],
            "host": ["numpy"],
            "namespaces": ["lib.ops"],
            "namespace-names": ["lib"],
            "tensor-types": ["lib.Tensor"],
            "tensor-names": ["*_tensor"],
            "module-classes": ["lib.Module"],
            "functions": {"lib.load": "tensor"},
            "roles": {"backend:{name}": ["engines/{name}/**"]},
            "frontends": ["lib/ops"],
            "per-file-ignores": {"lib/plot.py": ["EMB204"]},
            "exclude": ["vendored"],
            "contracts": [{"name": "floors", "type": "layers", "layers": ["a", "b"]}],
            "parity": {"frontend": "lib/ops", "backend": "lib/backend"},
            "baseline": "accepted.json",
            "output-format": "json",
        },
        ROOT,
    )
    assert settings.preset == "array-api"
    assert settings.namespace_names == ("lib",)
    assert settings.src == ("one/src", "two")
    assert settings.target_version == (3, 11)
    assert settings.min_tier is Tier.C
    assert settings.role("engines/numpy/math.py") == Role("backend", "numpy")
    assert settings.contracts == (Contract("floors", "layers", layers=("a", "b")),)
    assert settings.parity.backend == "lib/backend"
    assert settings.per_file_ignores == {"lib/plot.py": ("EMB204",)}
    assert settings.functions == {"lib.load": "tensor"}
    assert settings.tensor_names == ("*_tensor",)


@pytest.mark.parametrize(
    "table, message",
    [
        ({"min_tier": "A"}, "no key 'min_tier'; did you mean 'min-tier'"),
        ({"selct": []}, "did you mean 'select'"),
        ({"src-roots": ["src"]}, "no key 'src-roots'; it is now `src`, a list of folders"),
        ({"target-version": "3"}, "expected a version such as 'py312' or '3.12', got '3'"),
        ({"output-format": "sraif"}, "did you mean 'sarif'"),
        ({"min-tier": "D"}, "expected 'A', 'B' or 'C'"),
        ({"select": "EMB1"}, "expected a list of strings"),
        ({"baseline": 3}, "expected a string"),
        ({"roles": {"tests": ["x"]}}, "unknown role 'tests'; did you mean 'test'"),
        ({"roles": []}, "expected a table"),
        ({"contracts": {}}, "expected an array of tables"),
        ({"contracts": [{"type": "layer"}]}, "unknown type 'layer'; did you mean 'layers'"),
        ({"contracts": [{"type": "layers"}]}, "needs the key 'layers'"),
        ({"contracts": [{"type": "layers", "layer": []}]}, "no key 'layer'; did you mean 'layers'"),
        ({"parity": {"front": "x"}}, "no key 'front'"),
    ],
)
def test_a_wrong_value_raises_a_usage_error_that_names_it(table: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=r"tool\.emberlint") as caught:
        settings_from_table(table, ROOT)
    assert message in str(caught.value)


def test_load_reads_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.emberlint]\nmin-tier = 'B'\n")
    assert load_settings(tmp_path).min_tier is Tier.B


def test_broken_toml_raises_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool\n")
    with pytest.raises(UsageError, match=r"pyproject\.toml"):
        load_settings(tmp_path)


def test_the_root_is_the_nearest_pyproject_above_all_paths(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c.py").touch()
    assert find_root([tmp_path / "a" / "b" / "c.py"]) == tmp_path
    (tmp_path / "a" / "pyproject.toml").touch()
    assert find_root([tmp_path / "a" / "b"]) == tmp_path / "a"
    assert find_root([tmp_path / "a" / "b", tmp_path]) == tmp_path
