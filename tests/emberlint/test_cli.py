"""The command: options, formats, exit statuses."""

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from emberlint.cli import main

BAD = "import numpy as np\n\nx = np.sin(1.0)\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a project with one bad and one good file, and makes it the current folder."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'library'\n")
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "bad.py").write_text(BAD)
    (tmp_path / "library" / "good.py").write_text("from emberharmony import ops\n\nx = ops.sin(1.0)\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, words, input=stdin)


def test_check_is_the_default_command(project: Path) -> None:
    first, second = run("check", "library"), run("library")
    assert first.exit_code == second.exit_code == 1
    assert first.stdout == second.stdout
    assert first.stdout.splitlines()[0].startswith("library/bad.py:1:1: EMB101 backend-import: ")
    assert "2 findings in 2 files" in first.stderr


def test_clean_files_and_no_files_exit_with_0(project: Path) -> None:
    assert run("library/good.py").exit_code == 0
    (project / "empty").mkdir()
    result = run("empty")
    assert (result.exit_code, result.stdout) == (0, "")


@pytest.mark.parametrize(
    "words, message",
    [
        (["missing.py"], "no such file"),
        (["--select", "EMB9999", "library"], "unknown rule 'EMB9999'"),
        (["--select", "backend-imports", "library"], "did you mean 'backend-import'"),
        (["--no-such-option"], "No such option"),
        (["--explain-inference", "library/bad.py", "library"], "expected FILE:LINE"),
        (["--baseline-update", "library"], "needs --baseline"),
        (["--baseline", "missing.json", "library"], "cannot be read"),
        (["--diff-base", "--help", "library"], "is not a commit"),
        (["explain", "EMB999"], "unknown rule"),
        (["--add-ignore", "--fix", "library"], "run `emberlint fix` first"),
        (["--add-ignore", "-"], "no standard input"),
    ],
)
def test_a_wrong_call_exits_with_2(project: Path, words: list[str], message: str) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert message in result.stderr


def test_an_unknown_key_exits_with_2(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.emberlint]\nbackend = ['numpy']\n")
    result = run("library")
    assert result.exit_code == 2
    assert "did you mean 'backends'" in result.stderr


@pytest.mark.parametrize(
    "words, codes",
    [
        (["--select", "EMB101"], ["EMB101"]),
        (["--select", "backend-use,EMB3"], ["EMB102"]),
        (["--ignore", "EMB1xx"], []),
        (["--numpy-only"], ["EMB101", "EMB102"]),
        (["--imports-only"], ["EMB101"]),
        (["--conversion-only", "--precision-only"], []),
        (["--frontend-backend-only", "--verbose"], []),
    ],
)
def test_options_choose_the_rules(project: Path, words: list[str], codes: list[str]) -> None:
    result = run("library", "--format", "jsonl", *words)
    assert [json.loads(line)["code"] for line in result.stdout.splitlines()] == codes
    assert result.exit_code == (1 if codes else 0)


def test_json_has_the_documented_shape(project: Path) -> None:
    document = json.loads(run("--format", "json", "library").stdout)
    assert list(document) == ["version", "findings"]
    assert document["version"] == 1
    keys = [
        "code",
        "name",
        "path",
        "cell",
        "line",
        "column",
        "end_line",
        "end_column",
        "message",
        "tier",
        "reason",
        "fix",
    ]
    assert [list(one) for one in document["findings"]] == [keys, keys]
    use = document["findings"][1]
    assert (use["path"], use["line"], use["column"], use["end_column"]) == ("library/bad.py", 3, 5, 11)
    assert use["tier"] == "A"
    assert json.loads(run("--format", "json", "library/good.py").stdout) == {"version": 1, "findings": []}


def test_columns_count_characters(project: Path) -> None:
    (project / "library" / "bad.py").write_text("import numpy as np\n\nx = 'äöü', np.sin(1.0)\n", encoding="utf-8")
    document = json.loads(run("--format", "json", "--select", "EMB102", "library").stdout)
    assert document["findings"][0]["column"] == 12


def test_sarif_has_rules_results_and_regions(project: Path) -> None:
    document = json.loads(run("--format", "sarif", "library").stdout)
    (run_,) = document["runs"]
    assert document["version"] == "2.1.0"
    rules = run_["tool"]["driver"]["rules"]
    assert [rules[one["ruleIndex"]]["id"] for one in run_["results"]] == ["EMB101", "EMB102"]
    region = run_["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 19}
    driver = run_["tool"]["driver"]
    assert driver["version"]
    assert all(one["helpUri"].startswith(driver["informationUri"]) and one["help"]["text"] for one in rules)
    (fix,) = run_["results"][1]["fixes"]
    assert fix["artifactChanges"][0]["replacements"][0]["insertedContent"] == {"text": "ops.sin"}


def test_github_prints_an_error_annotation(project: Path) -> None:
    first = run("--format", "github", "library").stdout.splitlines()[0]
    assert first.startswith(
        "::error file=library/bad.py,line=1,endLine=1,col=1,endColumn=19,title=EMB101 backend-import::"
    )


def test_stdin_is_checked_under_the_given_file_name(project: Path) -> None:
    result = run("-", "--stdin-filename", "library/new.py", stdin=BAD)
    assert result.exit_code == 1
    assert result.stdout.startswith("library/new.py:1:1: EMB101")
    assert run("-", "--stdin-filename", "tests/test_new.py", stdin=BAD).exit_code == 0
    assert run("-", stdin="x = 1\n").exit_code == 0


@pytest.mark.parametrize("words", [[], ["--no-cache"]])
def test_stdin_is_checked_together_with_the_files_of_its_project(project: Path, words: list[str]) -> None:
    contract = "[[tool.emberlint.contracts]]\ntype = 'layers'\nlayers = ['library.top', 'library.core']\n"
    (project / "pyproject.toml").write_text(contract)
    for name, text in {"__init__": "", "core": "x = 1\n", "middle": "import library.top\n", "top": ""}.items():
        (project / "library" / f"{name}.py").write_text(text)
    assert run("--frontend-backend-only", "library", *words).exit_code == 0
    for _ in range(2):
        named = ["-", "--stdin-filename", "library/core.py", "--frontend-backend-only", *words]
        result = run(*named, stdin="from library import middle\n")
        assert result.exit_code == 1
        assert "library.core -> library.middle -> library.top" in result.stdout
        assert run(*named, stdin="x = 1\n").exit_code == 0


def test_a_file_that_does_not_parse_is_a_finding(project: Path) -> None:
    (project / "library" / "bad.py").write_text("def f(:\n")
    result = run("--select", "EMB204", "library")
    assert result.exit_code == 1
    assert "library/bad.py:1:7: EMB000 syntax-error: cannot be read as Python" in result.stdout


@pytest.mark.parametrize(
    "content",
    [
        *(b"\xff\xfe\x00", b"# coding: nonsense\n", b"x = '\x00'\n", b"# -*- coding: ascii -*-\n\xe9"),
        *(b"# coding: %s\nx = 1\n" % name for name in (b"rot13", b"hex", b"base64", b"undefined", b"utf-16", b"zlib")),
    ],
)
def test_a_file_that_cannot_be_read_is_a_finding(project: Path, content: bytes) -> None:
    (project / "library" / "bad.py").write_bytes(content)
    result = run("library")
    assert result.exit_code == 1
    assert "EMB000" in result.stdout


def test_other_encodings_are_read(project: Path) -> None:
    (project / "library" / "bad.py").write_bytes("# coding: latin-1\nx = 'é'\nimport numpy\n".encode("latin-1"))
    assert "library/bad.py:3:1: EMB101" in run("library").stdout


def test_add_ignore_silences_all_findings(project: Path) -> None:
    shown = run("--add-ignore", "--diff", "library")
    assert shown.exit_code == 1
    assert "+x = np.sin(1.0)  # noqa: EMB102\n" in shown.stdout
    assert (project / "library" / "bad.py").read_text() == BAD
    result = run("--add-ignore", "library")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "2 lines in 1 file silenced" in result.stderr
    silenced = (project / "library" / "bad.py").read_text()
    assert silenced == "import numpy as np  # noqa: EMB101\n\nx = np.sin(1.0)  # noqa: EMB102\n"
    assert "0 lines in 0 files silenced" in run("--add-ignore", "library").stderr
    assert (project / "library" / "bad.py").read_text() == silenced
    (project / "library" / "worse.py").write_text("x = (\n")
    assert run("--add-ignore", "library").exit_code == 1


def test_exit_zero_exits_with_0_and_statistics_counts_rules(project: Path) -> None:
    result = run("--exit-zero", "--statistics", "library")
    assert result.exit_code == 0
    assert "1 EMB102 backend-use" in result.stdout


def test_show_settings_prints_the_merged_settings(project: Path) -> None:
    shown = json.loads(run("--show-settings", "--min-tier", "C", "library").stdout)
    assert shown["min-tier"] == "C"
    assert shown["root"] == str(project)


def test_verbose_prints_advice(project: Path) -> None:
    assert "unsafe fix: ops.sin, with the same arguments" in run("-v", "library").stdout


def test_per_file_ignores_and_exclude_silence_findings(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.emberlint.per-file-ignores]\n'library/bad.py' = ['EMB101']\n")
    assert "EMB101" not in run("library").stdout
    (project / "pyproject.toml").write_text("[tool.emberlint]\nexclude = ['**/bad.py']\n")
    assert run("library").exit_code == 0
    assert run("library/bad.py").exit_code == 1  # named by the user


def test_a_baseline_accepts_findings_and_shrinks(project: Path) -> None:
    assert run("--baseline", "accepted.json", "--baseline-update", "library").exit_code == 0
    assert run("--baseline", "accepted.json", "library").exit_code == 0
    (project / "library" / "bad.py").write_text(BAD + "y = np.cos(x)\n")
    result = run("--baseline", "accepted.json", "--baseline-update", "library")
    assert (result.exit_code, result.stdout.count("\n")) == (1, 1)
    assert "numpy.cos" in result.stdout
    (project / "library" / "bad.py").write_text("x = 1\n")
    result = run("--baseline", "accepted.json", "library")
    assert (result.exit_code, result.stdout.count("accepted.json:")) == (1, 2)
    assert run("--baseline", "accepted.json", "--select", "EMB102,EMB905", "library").stdout.count("EMB905") == 1
    assert run("--baseline", "accepted.json", "--baseline-update", "library").exit_code == 0
    assert json.loads((project / "accepted.json").read_text())["entries"] == []


@pytest.mark.fresh_process
def test_diff_base_reports_changed_lines_only(project: Path) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *words], check=True, capture_output=True)

    git("init", "-q", "-b", "trunk")
    git("add", "library")
    git("commit", "-q", "-m", "start")
    assert run("--diff-base", "HEAD", "library").exit_code == 0
    (project / "library" / "bad.py").write_text(BAD.replace("sin", "cos"))
    (project / "library" / "new.py").write_text("import torch\n")
    result = run("--diff-base", "HEAD", "library")
    assert [line.split(": ")[0] for line in result.stdout.splitlines()] == ["library/bad.py:3:5", "library/new.py:1:1"]
    assert run("--diff-base", "no-such-commit", "library").exit_code == 2


def test_explain_and_rules_print_the_documentation_of_rules(project: Path) -> None:
    assert run("explain", "backend-use").stdout == run("explain", "EMB102").stdout
    text = run("explain", "EMB102").stdout
    assert "## EMB102 backend-use" in text
    assert "Found:" in text
    assert "Repaired:" in text
    assert "EMB102" in run("rules").stdout


def test_inventory_counts_native_uses_and_renames(project: Path) -> None:
    result = run("inventory", "library")
    assert "ops.sin" in result.stdout
    assert "1 native uses of 1 names in 2 files: 1 renames" in result.stdout
    document = json.loads(run("inventory", "--format", "json", "library").stdout)
    (use,) = document["uses"]
    assert use == {"native": "numpy.sin", "count": 1, "op": "sin", "rename": True, "first": "library/bad.py:3"}
    assert document["imports"] == {"numpy": 1}


def test_the_script_in_utils_runs_the_same_command() -> None:
    script = Path(__file__).parents[2] / "utils" / "emberlint.py"
    assert "from emberlint.__main__ import main" in script.read_text()
