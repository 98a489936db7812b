"""What the doctor says of versions and settings: each oddity is named."""

import re
from pathlib import Path
from typing import Any

import pytest

from emberharmony.testing.doctor import machine
from emberharmony.testing.doctor.finding import BROKEN, DIFFERS, OK, ROWS, Finding

DOCS = Path(__file__).parents[3] / "docs"


def odd(**environ: str) -> list[Finding]:
    return [finding for finding in machine.findings(environ) if finding.verdict != OK]


def test_a_usual_machine_is_as_it_should_be() -> None:
    assert odd() == []
    assert {finding.subject for finding in machine.findings({})} == {"versions", "settings"}


SETTINGS = {
    ("EMBERHARMONY_BACKEND", "nunpy"): (BROKEN, "names no backend: 'nunpy'; did you mean 'numpy'?"),
    ("EMBERHARMONY_BACKND", "numpy"): (DIFFERS, "there is no setting EMBERHARMONY_BACKND; did you mean"),
    ("OMP_NUM_THREADS", "0"): (DIFFERS, "OMP_NUM_THREADS=0: expected a number of threads"),
    ("OPENBLAS_NUM_THREADS", "100000"): (DIFFERS, "at most the"),
    ("MKL_NUM_THREADS", "all"): (DIFFERS, "MKL_NUM_THREADS=all"),
    ("MLX_ENABLE_TF32", "1"): (DIFFERS, "MLX_ENABLE_TF32=1 lets the library round"),
    ("NVIDIA_TF32_OVERRIDE", "1"): (DIFFERS, "NVIDIA_TF32_OVERRIDE=1 lets"),
    ("JAX_DEFAULT_MATMUL_PRECISION", "bfloat16"): (DIFFERS, "JAX_DEFAULT_MATMUL_PRECISION=bfloat16 lets"),
    ("KMP_DUPLICATE_LIB_OK", "TRUE"): (DIFFERS, "two OpenMP libraries"),
}


@pytest.mark.parametrize(("name", "value"), SETTINGS)
def test_an_odd_setting_is_named(name: str, value: str) -> None:
    verdict, words = SETTINGS[name, value]
    [finding] = odd(**{name: value})
    assert finding.verdict == verdict
    assert words in finding.detail
    assert machine.settings_in_use({name: value, "HOME": "x"})[name] == value


def test_no_variable_that_the_package_reads_is_odd() -> None:
    sources = (path.read_text(encoding="utf-8") for path in (DOCS.parent / "emberharmony").rglob("*.py"))
    read = {name for source in sources for name in re.findall(r'"(EMBERHARMONY_[A-Z_]+)"', source)}
    assert {"EMBERHARMONY_TRACEBACK", "EMBERHARMONY_DISPATCH"} <= read
    assert [finding.check for finding in odd(**dict.fromkeys(read - {"EMBERHARMONY_BACKEND"}, "1"))] == []
    page = (DOCS / "install.md").read_text(encoding="utf-8")
    rows = "".join(re.findall(r"^\| `.*", page, re.MULTILINE))
    assert {name for name in read if f"`{name}`" not in rows} == {"EMBERHARMONY_TEST_SEED"}  # which is for contributors


def test_the_backend_is_named_with_the_setting_that_chose_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config.toml"
    monkeypatch.setenv("EMBERHARMONY_CONFIG", str(file))
    assert machine.chosen_backend({}) == "the automatic choice"
    file.write_text('backend = "mlx"', encoding="utf-8")
    assert machine.chosen_backend({}) == f"mlx, from {machine.text_without_home(str(file))}"
    assert machine.chosen_backend({"EMBERHARMONY_BACKEND": "torch"}) == "torch, from EMBERHARMONY_BACKEND"


def test_a_backend_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "is_installed", lambda name: False)
    [finding] = odd(EMBERHARMONY_BACKEND="jax")
    assert finding.detail.endswith('names jax, which is not installed: pip install "jax"')


@pytest.mark.parametrize(
    ("text", "words"), [("backend = ", "cannot be read"), ('backend = "tensor"', "the settings file names no backend")]
)
def test_a_damaged_settings_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text, encoding="utf-8")
    monkeypatch.setenv("EMBERHARMONY_CONFIG", str(file))
    [finding] = odd()
    assert (finding.verdict, words in finding.detail) == (BROKEN, True)
    assert machine.settings_in_use({})["settings file"] == machine.text_without_home(str(file))


def requirement(name: str, version: str | None, floor: str, extra: str) -> Any:
    return lambda: iter([(name, version, floor, extra)])


def test_an_old_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "requirements", requirement("torch", "2.5.1+cu124", "2.12", "torch"))
    [finding] = odd()
    assert (finding.verdict, finding.row) == (DIFFERS, ROWS["versions"])
    assert finding.detail.startswith("torch 2.5.1+cu124 is older than 2.12")
    assert finding.detail.endswith('pip install --upgrade "emberharmony[torch]"')
    monkeypatch.setattr(machine, "requirements", requirement("torch", "2.12.0+cpu", "2.12", "torch"))
    assert odd() == []


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "requirements", requirement("scipy", None, "1.17", "conformance"))
    details = [finding.detail for finding in machine.findings({})]
    assert 'scipy is not installed: pip install "emberharmony[conformance]"' in details


def test_the_packages_that_count_are_those_of_programs_and_commands() -> None:
    known = {name: (floor, extra) for name, _, floor, extra in machine.requirements()}
    assert {"numpy", "click", "torch", "jax", "scipy", "rich"} <= known.keys()
    assert not {"pytest", "ruff", "sphinx"} & known.keys()
    assert known["numpy"][0].startswith("2.")
    assert known["scipy"][1] == "conformance"


def test_engines_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["numba>=0.68; extra == 'numba'", "pytest>=9; extra == 'test'"]
    monkeypatch.setattr(machine.metadata, "requires", lambda name: lines)
    assert [(name, floor, extra) for name, _, floor, extra in machine.requirements()] == [("numba", "0.68", "numba")]


def test_the_facts_name_what_matters() -> None:
    facts = machine.facts()
    assert {"python", "processor", "cores", "memory GiB", "libraries", "NumPy's BLAS", "settings"} <= facts.keys()
    assert facts["NumPy's BLAS"] != "unknown"
    assert "numpy" in facts["libraries"]


@pytest.mark.parametrize("row", ROWS.values())
def test_a_difference_leads_to_a_section_of_the_documentation(row: str) -> None:
    page, _, anchor = row.partition("#")
    headings = [
        line.lstrip("#").strip().lower().replace(" ", "-")
        for line in (DOCS / page).read_text(encoding="utf-8").splitlines()
        if line.startswith("#")
    ]
    assert not anchor or anchor in headings
