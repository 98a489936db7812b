"""The inventory: the native names that a project must replace to use `ops`."""

from pathlib import Path

from click.testing import CliRunner

from emberlint.cli import main
from emberlint.config.settings import Settings
from emberlint.inference import infer
from emberlint.inventory import Inventory, take_inventory
from emberlint.source.source_file import SourceFile

SETTINGS = Settings(root=Path("/nowhere"))
SOURCE = """import numpy as np
import torch.nn
from numpy import linalg

a = np.sin(1.0) + np.sin(2.0)
b = np.sum(a, dtype=np.float32, where=a > 0)
c = np.busday_count("2024-01", "2024-02")
d = linalg.inv(a)
"""


def taken(*sources: str) -> Inventory:
    return take_inventory(
        SourceFile(f"library/m{number}.py", source, SETTINGS) for number, source in enumerate(sources)
    )


def test_a_row_has_uses_op_renames_and_first_place() -> None:
    rows = {row.native: row for row in taken(SOURCE).rows()}
    sin = rows["numpy.sin"]
    assert (sin.uses, sin.op, sin.renames, sin.first) == (2, "sin", 2, "library/m0.py:5")
    assert rows["numpy.sum"].op == "sum"
    assert rows["numpy.sum"].renames == 0  # the op has no argument `where=`
    assert rows["numpy.float32"].op == "float32"
    assert rows["numpy.busday_count"].op is None
    assert rows["numpy.linalg.inv"].first == "library/m0.py:8"


def test_rows_begin_with_the_most_used_name() -> None:
    assert taken(SOURCE).rows()[0].native == "numpy.sin"


def test_totals_add_up() -> None:
    inventory = taken(SOURCE, "import numpy\nx = numpy.sin(1.0)\n", "x = 1\n")
    totals = inventory.totals()
    assert sum(totals.values()) == sum(inventory.counts.values())
    assert totals["no op"] == 1
    assert inventory.files == 3
    assert inventory.imports == {"numpy": 3, "torch": 1}


def test_a_file_without_native_names_has_no_rows() -> None:
    inventory = taken("from emberharmony import ops\nx = ops.sin(1.0)\n")
    assert inventory.rows() == []
    assert set(inventory.totals().values()) == {0}


def test_annotations_are_no_calls_and_methods_of_tensors_count() -> None:
    source = "import torch\n\ndef f(x: torch.Tensor) -> torch.Tensor:\n    return torch.unsqueeze(x, 0).permute(1, 0)\n"
    file = SourceFile("library/m.py", source, SETTINGS, infer=infer)
    rows = {row.native: row for row in take_inventory([file]).rows()}
    assert rows["torch.Tensor (annotation)"][1:4] == (2, "Tensor", 2)
    assert rows["torch.unsqueeze"].op == "expand_dims"
    assert rows["torch.Tensor.permute"].op == "transpose"
    assert "torch.Tensor" not in rows


def test_single_random_numbers_have_an_op() -> None:
    rows = {row.native: row for row in taken("import numpy as np\n\nx = np.random.random(3)\n").rows()}
    assert rows["numpy.random.random"].op == "random.uniform"


def test_the_command_leaves_out_tests_and_backends(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'library'\n")
    for path in ("library/a.py", "library/backend/numpy/b.py", "tests/test_c.py"):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("import numpy as np\n\nx = np.sin(1.0)\n")
    assert " in 1 files: " in CliRunner().invoke(main, ["inventory", str(tmp_path)]).stdout
    assert " in 3 files: " in CliRunner().invoke(main, ["inventory", "--all", str(tmp_path)]).stdout
