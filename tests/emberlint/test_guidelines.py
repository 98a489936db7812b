"""docs/guidelines.md: its bad examples have findings on the marked lines; its good examples are clean and run."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from emberharmony import ops
from emberharmony.backend.discovery import is_installed
from emberharmony.core.errors import BackendMismatchError
from emberlint.config.settings import Settings
from emberlint.run.engine import check_texts
from emberlint.run.registry import all_rules

PAGE = Path(__file__).parents[2] / "docs" / "guidelines.md"
SETTINGS = Settings(root=Path("/nowhere"))
MODULES = {"numpy": "numpy", "torch": "torch", "mlx": "mlx.core"}


class Block(NamedTuple):
    """A fenced example, its line, the path it belongs to, and the findings that its comments expect."""

    source: str
    line: int
    path: str
    expected: frozenset[tuple[int, str]]


def blocks() -> list[Block]:
    text = PAGE.read_text(encoding="utf-8")
    found = []
    for match in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        path = re.match(r"# (\S+\.py)\n", match[1])
        lines = enumerate(match[1].splitlines(), 1)
        expected = {(number, code) for number, line in lines for code in re.findall(r"EMB\d{3}", line)}
        line = text[: match.start()].count("\n") + 1
        found.append(Block(match[1], line, path[1] if path else "library/module.py", frozenset(expected)))
    return found


def cases(*, bad: bool) -> list[Any]:
    return [pytest.param(one, id=f"line-{one.line}") for one in blocks() if bool(one.expected) == bad]


def codes(block: Block) -> set[tuple[int, str]]:
    report = check_texts({block.path: block.source}, SETTINGS, frozenset(all_rules()))
    return {(one.line, one.code) for one in report.findings}


@pytest.mark.parametrize("block", cases(bad=True))
def test_bad_examples_have_findings_on_the_marked_lines(block: Block) -> None:
    assert codes(block) == block.expected


@pytest.mark.parametrize("block", cases(bad=False))
def test_good_examples_pass(block: Block) -> None:
    assert codes(block) == set()


@pytest.mark.parametrize("block", cases(bad=False))
def test_good_examples_run_and_print_the_stated_output(
    block: Block, backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    own = SETTINGS.role(block.path).backend
    if own is not None and not is_installed(own):
        pytest.skip(f"{own} is not installed")
    space: dict[str, Any] = {"__name__": "example"}
    exec(compile(block.source, f"{PAGE}:{block.line}", "exec"), space)
    for name, value in space.items():
        if name.startswith("test_"):
            value(backend)
    said = re.findall(r"^print\(.*\)  # (?!emberlint)(.*)$", block.source, re.MULTILINE)
    silenced = re.findall(r"^print\(.*\)  # emberlint", block.source, re.MULTILINE)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(said) + len(silenced)
    assert printed[: len(said)] == said


def test_every_rule_for_code_on_top_of_ops_has_a_bad_example() -> None:
    shown = {code for block in blocks() for _, code in block.expected}
    misplaced = {"EMB301", "EMB305"}  # these concern contracts and folders, not lines of code
    assert {code for code in all_rules() if code[:4] in ("EMB1", "EMB2", "EMB3")} - misplaced == shown


@pytest.mark.fresh_process
def test_the_commands_of_the_page_exit_with_0(tmp_path: Path) -> None:
    for path, text in {
        "library/ops/math.py": "@op\ndef sin(x): ...\n",
        "library/backend/torch/math_ops.py": "import torch\n\nclass TorchMathOps:\n    sin = staticmethod(torch.sin)\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    commands = re.findall(r"^\$ python (utils/\w+\.py) (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(commands) == 3
    for script, words in commands:
        command = [sys.executable, str(PAGE.parents[1] / script), *words.split()]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_there_are_good_and_bad_examples() -> None:
    assert len(cases(bad=True)) >= 14
    assert len(cases(bad=False)) >= 20


def native(name: str) -> Any:
    return pytest.importorskip(MODULES[name])


# The next tests check the statements of the page about operators on native tensors. They compare dtypes by name,
# because `torch.float64` does not equal "float64".


@pytest.mark.parametrize("name, ending", [("numpy", "float64"), ("torch", "float32"), ("mlx", "float32")])
def test_the_dtype_to_which_an_operator_promotes(name: str, ending: str) -> None:
    library = native(name)
    make = library.tensor if name == "torch" else library.array
    integers = make([1, 2], dtype=library.int32)
    assert str((integers / integers).dtype).endswith(ending)
    assert str((integers + make([1.0, 2.0], dtype=library.float32)).dtype).endswith(ending)


@pytest.mark.parametrize("name, ending", [("numpy", "float64"), ("torch", "float32"), ("mlx", "float64")])
def test_the_promotion_of_a_zero_dimensional_tensor(name: str, ending: str) -> None:
    library = native(name)
    make = library.tensor if name == "torch" else library.array
    total = make(1.0, dtype=library.float64) + make([1.0], dtype=library.float32)
    if name == "mlx":  # MLX has float64 on the CPU only
        with library.stream(library.cpu):
            total = make(1.0, dtype=library.float64) + make([1.0], dtype=library.float32)
    assert str(total.dtype).endswith(ending)


@pytest.mark.filterwarnings("ignore:__array_wrap__ must accept:DeprecationWarning")
def test_the_library_whose_tensor_an_operator_returns() -> None:
    np, torch, mx = native("numpy"), native("torch"), native("mlx")
    host, tensor, array = np.ones(2, "float32"), torch.ones(2), mx.ones(2)
    assert isinstance(tensor + host, torch.Tensor)
    assert isinstance(array + host, mx.array)
    assert isinstance(host + array, np.ndarray)
    with ops.use_backend("torch"):
        assert isinstance(ops.add(tensor, host), torch.Tensor)
        with pytest.raises(BackendMismatchError):
            ops.add(tensor, array)


@pytest.mark.parametrize("name, seen", [("numpy", True), ("torch", True), ("mlx", False)])
def test_whether_a_write_changes_a_view(name: str, seen: bool) -> None:
    x = native(name).zeros(3)
    part = x[:2]
    x[0] = 1.0
    assert bool(part[0] == 1.0) == seen


def test_the_benchmark_runs_the_two_functions_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    script = PAGE.parents[1] / "benchmarks" / "guidelines.py"
    monkeypatch.syspath_prepend(script.parent)
    spec = importlib.util.spec_from_file_location("guidelines", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    loop, whole = module.row_functions()
    with ops.use_backend("numpy"):
        x = ops.reshape(ops.arange(1.0, 7.0), (2, 3))
        assert ops.allclose(loop(x), whole(x))
