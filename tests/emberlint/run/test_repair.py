"""Repairs of files: complete, and without changes to anything else."""

import cProfile
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from emberlint.config.errors import UsageError
from emberlint.config.settings import Settings
from emberlint.run.registry import all_rules
from emberlint.run.repair import repair_content, repair_file, repair_text

SETTINGS = Settings(root=Path("/nowhere"))
CODES = frozenset(all_rules())
BAD = "from emberharmony import ops\n\nx = ops.ones(3) + 1  # one more\n"
GOOD = "from emberharmony import ops\n\nx = ops.add(ops.ones(3), 1)  # one more\n"


def test_nested_findings_are_repaired_together() -> None:
    bad = "from emberharmony import ops\n\ny = -(ops.ones(3) + 1) * 2\n"
    result = repair_text("library/m.py", bad, SETTINGS, CODES, unsafe=False)
    assert result.after.endswith("y = ops.multiply(ops.negative(ops.add(ops.ones(3), 1)), 2)\n")
    assert repair_text("library/m.py", result.after, SETTINGS, CODES, unsafe=False).after == result.after


def test_a_clean_text_is_unchanged() -> None:
    assert repair_text("library/m.py", GOOD, SETTINGS, CODES, unsafe=False) == (GOOD, GOOD, ())


def test_only_the_chosen_rules_repair() -> None:
    assert repair_text("library/m.py", BAD, SETTINGS, frozenset({"EMB202"}), unsafe=False).after == BAD


def test_the_diff_names_the_file() -> None:
    lines = [*repair_text("library/m.py", BAD, SETTINGS, CODES, unsafe=False).diff("library/m.py")]
    assert lines[:2] == ["--- a/library/m.py\n", "+++ b/library/m.py\n"]
    assert "-x = ops.ones(3) + 1  # one more\n" in lines


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("coding", ["utf-8", "latin-1"])
def test_a_file_keeps_its_encoding_line_ends_and_mode(tmp_path: Path, coding: str, end: bytes) -> None:
    def encoded(text: str) -> bytes:
        return f"# coding: {coding}\n# é\n{text}".encode(coding).replace(b"\n", end)

    file = tmp_path / "m.py"
    file.write_bytes(encoded(BAD))
    file.chmod(0o754)
    repair_file("m.py", file, SETTINGS, CODES, unsafe=False, write=True)
    assert file.read_bytes() == encoded(GOOD)
    assert stat.S_IMODE(file.stat().st_mode) == 0o754
    assert [*tmp_path.iterdir()] == [file]


def test_a_file_is_not_written_unless_asked(tmp_path: Path) -> None:
    file = tmp_path / "m.py"
    file.write_text(BAD)
    assert repair_file("m.py", file, SETTINGS, CODES, unsafe=False, write=False).after == GOOD
    assert file.read_text() == BAD


@pytest.mark.parametrize("content", [b"# coding: nonsense\n", b"\xff\xfe"])
def test_undecodable_bytes_raise_a_usage_error(content: bytes) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        repair_content("m.py", content, SETTINGS, CODES, unsafe=False)


def _long_file(functions: int) -> str:
    """Returns a file with 40 findings and 101 lines in each function."""
    parts = ["from emberharmony import ops\n\n\n"]
    for number in range(functions):
        parts.append(f"def f{number}(x):\n    a = ops.exp(x)\n")
        parts += [f"    b{at} = a * {at} + 1\n" for at in range(20)]
        parts += [f"    c{at} = 'text {at}'  # a comment\n" for at in range(78)] + ["\n"]
    return "".join(parts)


def _calls(text: str) -> int:
    """Returns how many functions run during the repair of a text."""
    profile = cProfile.Profile()
    profile.enable()
    result = repair_text("library/m.py", text, SETTINGS, CODES, unsafe=False)
    profile.disable()
    assert result.after.count("ops.add(ops.multiply(") == text.count(" * ")
    return sum(one.callcount for one in profile.getstats())


@pytest.mark.slow
def test_the_work_of_a_repair_is_linear() -> None:
    _calls(_long_file(1))  # what is imported and cached once
    small, large = _calls(_long_file(10)), _calls(_long_file(40))
    assert large < 4.2 * small


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the unit of the peak differs")
def test_a_repair_of_50000_lines_needs_at_most_400_megabytes(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'library'\n")
    file = tmp_path / "big.py"
    file.write_text(_long_file(500))
    code = (
        "import resource, sys\nfrom emberlint.cli import main\n"
        "main(['fix', sys.argv[1]], standalone_mode=False)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert file.read_text().count("ops.add(ops.multiply(") == 10_000
    assert int(done.stdout.splitlines()[-1]) <= 400 * 1024
