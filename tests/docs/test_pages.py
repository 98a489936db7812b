"""The pages that `docs/pages.py` writes from the declarations and from a conformance report."""

import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from emberharmony import nn, ops, optim
from emberharmony.core.registry import OPS

FILE = Path(__file__).parents[2] / "docs" / "pages.py"


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pages", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def entry(op: str, backend: str, status: str = "native", worst: float = 0.25, **more: Any) -> dict[str, Any]:
    common = {"op": op, "backend": backend, "status": status, "reason": "", "values": "by oracle", "tolerance": 4.0}
    return common | {"worst": worst, "dtypes": ["float32"], "failures": []} | more


def test_the_matrix_shows_status_reason_and_share_of_the_tolerance(pages: ModuleType) -> None:
    entries = [
        *(entry("sin", "numpy"), entry("sin", "strict", worst=0.5)),
        *(entry("erf", "numpy"), entry("erf", "strict", "unsupported", 0.0, reason="no kernel", dtypes=[])),
        *(entry("sum", "numpy"), entry("sum", "strict", "override", failures=[{}])),
        *(entry("sort", "numpy", worst=0.0), entry("sort", "strict", "composite", 0.0)),
        *(entry("grad", "numpy", values="by tests"), entry("grad", "strict", "composite", values="by tests")),
    ]
    text = pages.matrix({"backends": {"numpy": "2", "strict": "1"}, "ops": entries})
    assert text[text.index("| op") :].splitlines() == [
        "| op | numpy | strict | tolerance | met |",
        "|---|---|---|---|---|",
        "| `sin` | native | native | 4 | 50% |",
        "| `erf` | native | unsupported: no kernel | 4 | 25% |",
        "| `sum` | native | override | 4 | **not on strict** |",
        "| `sort` | native | composite | 4 | exact |",
        "| `grad` | native | composite |  | by tests |",
    ]


DOCSTRING = """Returns the product of a matrix and a vector.

    The vector is not copied.

    Args:
        matrix: (rows, columns); without rows
            the result is empty.
        x, *others (TensorLike): vectors.

    Shape: (rows,), and for a stack of matrices
    (..., rows).
    Dtype: that of the matrix.

    Returns:
        The product.

    Raises:
        ShapeError: if the vector: is too long.

        DTypeError: if there is no common dtype.

    Example:
        >>> for i in range(2):
        ...     print(i)
        0
        1

        The second example is short.

        >>> 1
        1

    Source: a book.
    """

MARKDOWN = """\
Returns the product of a matrix and a vector.

The vector is not copied.

**Args**

`matrix`
: (rows, columns); without rows
  the result is empty.

`x`, `*others` (TensorLike)
: vectors.

**Shape:** (rows,), and for a stack of matrices
(..., rows).

**Dtype:** that of the matrix.

**Returns**

The product.

**Raises**

`ShapeError`
: if the vector: is too long.

`DTypeError`
: if there is no common dtype.

**Example**

```pycon
>>> for i in range(2):
...     print(i)
0
1
```

The second example is short.

```pycon
>>> 1
1
```

**Source:** a book."""


def test_the_blocks_of_a_docstring_become_definition_lists_and_paragraphs(pages: ModuleType) -> None:
    assert pages.as_markdown(DOCSTRING) == MARKDOWN


@pytest.mark.parametrize(
    ("docstring", "markdown"),
    [
        ("", ""),
        ("Returns 1.", "Returns 1."),
        ("Source: a book.", "**Source:** a book."),
        ("Note: this is text.", "Note: this is text."),
        ("Returns 1.\n\nReturns:\n    A number.", "Returns 1.\n\n**Returns**\n\nA number."),
        (">>> 1\n1", "```pycon\n>>> 1\n1\n```"),
    ],
)
def test_short_docstrings(pages: ModuleType, docstring: str, markdown: str) -> None:
    assert pages.as_markdown(docstring) == markdown


def test_no_block_of_a_declaration_is_left_as_text(pages: ModuleType) -> None:
    for name, spec in OPS.items():
        text = pages.as_markdown(spec.declared.__doc__ or "")
        assert not re.search(r"^(Args|Returns|Raises|Example|Shape|Dtype|Source):", text, re.MULTILINE), name
        assert text.count("```") == 2 * text.count("```pycon"), name


@pytest.mark.slow
def test_every_op_has_a_row_and_a_place_on_a_page(pages: ModuleType, tmp_path: Path) -> None:
    before = ops.get_backend()
    pages.write_pages(tmp_path)
    assert ops.get_backend() == before
    table = (tmp_path / "matrix.md").read_text()
    assert all(f"| `{op}` |" in table for op in OPS)
    assert {file.stem for file in tmp_path.glob("*.md")} == {spec.category for spec in OPS.values()} | {"matrix"}
    assert "not on" not in table


def test_every_layer_and_optimizer_has_a_place_on_a_page(pages: ModuleType, tmp_path: Path) -> None:
    for package in (nn, optim):
        folder = tmp_path / package.__name__
        pages.write_module_pages(folder, package)
        text = "".join(page.read_text(encoding="utf-8") for page in folder.glob("*.md"))
        heads = re.findall(r"^## (\w+)$", text, re.MULTILINE)
        public = {name for name in package.__all__ if not inspect.ismodule(getattr(package, name))}
        assert public - set(heads) <= {"Buffer", "Parameter"}
        assert " at 0x" not in text
        assert "Args:\n" not in text
        assert "options.md" not in {page.name for page in folder.glob("*.md")}
