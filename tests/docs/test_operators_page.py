"""The tables of docs/operators.md say what each library does with native operands under each transform."""

import functools
import importlib
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.errors import BackendMismatchError, TracedTensorError
from tests.ops.operator_dtypes import cell
from tests.ops.operators import COLUMNS, LIBRARIES, expected, outcome, rows

TEXT = (Path(__file__).parents[2] / "docs" / "operators.md").read_text(encoding="utf-8")
NAMES = {"numpy": "NumPy", "torch": "PyTorch", "mlx": "MLX", "jax": "JAX"}
INSTALLED = [name for name in LIBRARIES if name in ops.available_backends()]


def _cells(backend: str) -> dict[tuple[str, str], str]:
    section = re.search(rf"^### {NAMES[backend]}\n(.*?)^##", TEXT, re.DOTALL | re.MULTILINE)
    assert section is not None
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in section[1].splitlines() if "|" in line]
    return {(row[0], column): cell for row in table[2:] for column, cell in zip(table[0][1:], row[1:], strict=True)}


EACH = [pytest.param(name, marks=pytest.mark.slow) if name == "jax" else name for name in INSTALLED]


@pytest.mark.parametrize("name", EACH)
def test_operators_beside_ops_give_what_the_first_table_says(name: str) -> None:
    table = [
        [part.strip() for part in line.strip("|").split("|")] for line in TEXT.splitlines() if line.startswith("|")
    ]
    place = table[0].index(NAMES[name])
    rows = [row for row in table[2:] if len(row) == len(table[0])]
    assert table[0][0] == "operands"
    assert len(rows) >= 25
    with warnings.catch_warnings(action="ignore"), ops.use_backend("numpy"), ops.use_backend(name):
        assert {row[0]: cell(row[0]) for row in rows} == {row[0]: row[place] for row in rows}


@pytest.mark.parametrize("name", EACH)
def test_every_cell_of_the_tables_is_what_happens(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "torch":
        torch = importlib.import_module("torch")
        monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    found = {}
    with warnings.catch_warnings(), ops.use_backend("numpy"):
        warnings.simplefilter("ignore")
        with ops.use_backend(name):
            for row, program in rows(name).items():
                for column, run in COLUMNS.items():
                    found[row, column] = outcome(program, run, expected(row, column))
    assert found == _cells(name)


def test_some_cells_of_jax_are_what_happens() -> None:
    pytest.importorskip("jax")
    table = _cells("jax")
    with warnings.catch_warnings(), ops.use_backend("numpy"):
        warnings.simplefilter("ignore")
        with ops.use_backend("jax"):
            for row in ("`a * x`, `a @ x`", "`lib.sin(x)`"):
                for column in ("`grad`", '`checked("nan")`'):
                    found = outcome(rows("jax")[row], COLUMNS[column], expected(row, column))
                    assert found == table[row, column], (row, column)


def test_the_limits_on_mlx_are_typed() -> None:
    mx = pytest.importorskip("mlx.core")
    with ops.use_backend("mlx"):
        x = ops.array([0.5, 2.0])
        reading = lambda x: ops.sum(ops.power(mx.sin(x), 2)) * float(ops.sum(x))
        choosing = lambda x: ops.sum(mx.sin(x) if x[0] > 0 else x)
        kept = ops.checkpoint(lambda x: ops.sum(ops.power(mx.sin(x), 2)))
        for fn in (reading, choosing, kept):
            with pytest.raises(TracedTensorError, match=r"call the functions of ops"):
                ops.hessian(fn)(x)
        for fn in (reading, choosing):
            for words in ((), ("nan",)):
                with ops.checked(*words), pytest.raises(TracedTensorError, match=r"call the functions of ops"):
                    ops.grad(fn)(x)


@pytest.mark.parametrize("name", INSTALLED)
def test_shapes_alone_refuse_the_functions_of_a_library_by_name(name: str) -> None:
    with warnings.catch_warnings(), ops.use_backend("numpy"):
        warnings.simplefilter("ignore")
        with ops.use_backend(name):
            programs = rows(name)
            refused = ["`lib.sin(x)`", *(["`a * x`, `a @ x`"] if name == "mlx" else [])]
            for row, program in programs.items():
                if row in refused:
                    with pytest.raises(TracedTensorError):
                        ops.eval_shape(program, ops.TensorSpec((2, 2)))
                else:
                    assert ops.eval_shape(program, ops.TensorSpec((2, 2))).shape == (2, 2)


def test_without_axes_numpy_gives_a_scalar_and_in_place_changes_every_name() -> None:
    with ops.use_backend("numpy"):
        x = ops.array([1.0, 2.0])
        assert (x[0] * 2).dtype == "float32"
        assert not ops.is_tensor(x[0] * 2)
        assert ops.is_tensor(ops.multiply(x[0], 2))
    changed = {}
    for name in INSTALLED:
        with warnings.catch_warnings(action="ignore"), ops.use_backend(name):
            x = other = ops.array([1.0, 2.0])
            x += 1.0
            changed[name] = ops.to_numpy(other).tolist() == [2.0, 3.0]
    assert changed == {name: name != "jax" for name in INSTALLED}


def test_an_operator_mixes_libraries_and_warns_where_an_op_does_not() -> None:
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings(action="ignore"):  # NumPy's, of PyTorch's `__array_wrap__`
        assert isinstance(torch.ones(2) + np.ones(2), torch.Tensor)
    with ops.use_backend("numpy"):
        with pytest.raises(BackendMismatchError):
            ops.add(np.ones(2), torch.ones(2))
        one, zero = ops.array([1.0]), ops.array([0.0])
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            one / zero
        assert ops.divide(one, zero).tolist() == [np.inf]


def test_dtypes_of_operators_differ_as_the_page_says() -> None:
    single, whole = np.ones(2, "float32"), np.ones(2, "int64")
    assert (single + whole).dtype == "float64"
    assert ops.add(single, whole).dtype == "float32"
    assert ops.grad(lambda x: ops.sum(x + whole))(single).dtype == "float32"
    torch = pytest.importorskip("torch")
    with ops.use_backend("torch"):
        narrow, wide = torch.ones(2), torch.ones((), dtype=torch.float64)
        assert (narrow + wide).dtype is torch.float32
        assert ops.add(narrow, wide).dtype is torch.float64
