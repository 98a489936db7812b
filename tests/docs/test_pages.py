"""The pages that `docs/pages.py` writes from the declarations and from a conformance report."""

import importlib
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from emberharmony import nn, ops, optim
from emberharmony.core.registry import OPS, OpSpec

DOCS = Path(__file__).parents[2] / "docs"


def module(name: str) -> ModuleType:
    """Returns a module that the build of the documentation imports."""
    pytest.importorskip("matplotlib")
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(DOCS))


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    return module("pages")


@pytest.fixture(scope="module")
def op_pages() -> ModuleType:
    return module("op_pages")


def entry(op: str, backend: str, status: str = "native", worst: float = 0.25, **more: Any) -> dict[str, Any]:
    common = {"op": op, "backend": backend, "status": status, "reason": "", "values": "by oracle", "tolerance": 4.0}
    return common | {"worst": worst, "dtypes": ["float32"], "failures": []} | more


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
    assert all(f"| [`{op}`]({spec.category}/{op}.md) |" in table for op, spec in OPS.items())
    assert (tmp_path / "machines.txt").exists()
    categories = {spec.category for spec in OPS.values()}
    assert {file.stem for file in tmp_path.glob("*.md")} == categories | {"matrix", "index"}
    assert "not on" not in table
    for spec in OPS.values():
        assert_complete((tmp_path / spec.category / f"{spec.name}.md").read_text(), spec)


def assert_complete(page: str, spec: OpSpec) -> None:
    """Asserts that the page of an op has everything that a reader looks for."""
    folded = ("Backends and tolerance", "Source", *(() if spec.takes_callable else ("Gradient",)))
    for part in ("**See also:**", *(f":::{{dropdown}} {each}\n" for each in folded)):
        assert part in page, (spec.name, part)
    assert page.index("**See also:**") < page.index(":::{dropdown}")
    body = page.partition("```python\n")[2].partition("\n```")[0]
    for parameter in spec.parameters:
        assert f"{parameter.name}: {parameter.annotation}" in body, (spec.name, parameter.name)
        assert re.search(rf"^`{parameter.name}`\n: \S", page, re.MULTILINE), (spec.name, parameter.name)
    assert body.endswith(f"-> {spec.returns}"), spec.name
    indexed = page.partition("```{index} ")[2].partition("\n")[0].split(", ")
    assert {spec.name, *spec.aliases} <= set(indexed), spec.name


def test_the_page_of_every_op_is_complete(op_pages: ModuleType) -> None:
    for spec in OPS.values():
        assert_complete(op_pages.op_page(spec, [entry(spec.name, "numpy")]), spec)


def test_the_page_of_an_op_shows_names_backends_accuracy_and_gradient(op_pages: ModuleType) -> None:
    entries = [
        entry("gammaln", "numpy", "override", dtypes=["float32", "float64"]),
        entry("gammaln", "mlx", "composite", 0.5),
        entry("gammaln", "strict", "unsupported", 0.0, reason="no kernel", dtypes=[]),
    ]
    spec = next(spec for spec in OPS.values() if "lgamma" in (spec.name, *spec.aliases))
    page = op_pages.op_page(spec, entries)
    assert "```{index} gammaln, lgamma\n```" in page
    assert "| numpy | its own, in place of the composite | none |" in page
    assert "| mlx | composite: written over other ops | float64 |" in page
    assert "| strict | unsupported: no kernel | all |" in page
    assert "within 4 eps" in page
    assert "the largest error that was met is 50% of that" in page
    assert "rule of its own" in page
    assert "**Example**" in page


def test_the_page_of_an_op_says_what_it_takes_and_gives(op_pages: ModuleType) -> None:
    def page(name: str) -> str:
        text: str = op_pages.op_page(OPS[name], [entry(name, "numpy")])
        return text

    assert "It takes real dtypes; complex ones raise a `DTypeError`. The result has `bool`." in page("less")
    assert "It takes numeric dtypes; bool ones raise a `DTypeError`. The result has the dtype that" in page("power")
    assert "It takes" not in page("matmul")


def test_the_page_of_an_op_links_to_ops_and_layers_by_meaning(op_pages: ModuleType) -> None:
    page = op_pages.op_page(OPS["relu"], [entry("relu", "numpy")], "the picture")
    linked = (
        "[`nn.ReLU`](../nn/layers.activations.md#relu), the layer; [`leaky_relu`](../activation/leaky_relu.md), with a"
    )
    assert f"the picture\n\n**See also:** {linked} slope;" in page
    assert page.count("See also") == 1


def test_what_people_look_at_has_a_picture(tmp_path: Path) -> None:
    pictures = module("op_pictures")
    drawn = {name: pictures.draw_op(spec, tmp_path) for name, spec in OPS.items() if spec.category != "device"}
    assert {name for name, text in drawn.items() if text} >= {"gelu", "threshold", "kaiser", "resize", "grid_sample"}
    assert not drawn["sum"]
    assert ":alt: gelu and its derivative from -4 to 4\n" in drawn["gelu"]
    assert (tmp_path / "pictures" / "gelu.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert "one_cycle(1.0, 100)" in pictures.draw_schedule("one_cycle", tmp_path)


def test_a_category_lists_its_ops_with_their_first_sentences(op_pages: ModuleType) -> None:
    specs = [spec for spec in OPS.values() if spec.category == "activation"]
    page = op_pages.category_page("activation", specs)
    assert (
        "| [`softmax`](activation/softmax.md) | Returns `exp(x) / sum(exp(x))` over axes, without overflow. |" in page
    )
    assert page.count("\nactivation/") == len(specs)


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


def test_the_index_has_every_op_by_its_names_and_every_category_once(op_pages: ModuleType) -> None:
    categories: dict[str, list[OpSpec]] = {}
    for spec in OPS.values():
        categories.setdefault(spec.category, []).append(spec)
    text = op_pages.api_index(categories)
    for spec in OPS.values():
        for alias in spec.aliases:
            assert f"[`{alias}`](" in text, alias
        assert f"]({spec.category}/{spec.name}.md)" in text, spec.name
    tree = text.partition("```{toctree}")[2].splitlines()
    for category in categories:
        assert tree.count(category) == 1, category
        assert len(op_pages.title_of(category)) <= 32
