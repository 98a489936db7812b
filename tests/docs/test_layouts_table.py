"""The table of layouts in docs/weights.md has the rows of the code."""

import re
from pathlib import Path
from typing import Any

from emberharmony import nn
from emberharmony.nn.layouts.row import Part, Row, Weight
from emberharmony.nn.layouts.table import TABLE, row_of
from tests.nn.layout_cases import CASES

TEXT = (Path(__file__).parents[2] / "docs" / "weights.md").read_text(encoding="utf-8")

EXAMPLES: dict[str, Any] = {
    "QuantizedLinear": lambda: nn.QuantizedLinear(32, 4, group_size=32),
    "QuantizedEmbedding": lambda: nn.QuantizedEmbedding(4, 32, group_size=32),
    "TransformerEncoder": lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 1),
    "TransformerDecoder": lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 1),
    "Loss": lambda: nn.CrossEntropyLoss([1.0, 2.0]),
}
"""Layers that no case has."""


def example(name: str) -> Any:
    """Returns a layer of a class; the table has the numbers of rows of this one."""
    return EXAMPLES[name]() if name in EXAMPLES else next(case for case in CASES if case.name == name).made()


def lines() -> list[str]:
    """Returns the rows of the table; classes with the same cells share one."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for name in TABLE:
        layer = example(name)
        mlx = cell(row_of(layer, "mlx"), TABLE[name].mlx_class, layer)
        keras = cell(row_of(layer, "keras"), TABLE[name].keras_class, layer)
        if re.search(r"[123]d$", name) and name != "ConvLSTM2d":
            mlx, keras = (re.sub(r"(?<=\D)[123](?=[dD]\b|DT)", "*n*", each) for each in (mlx, keras))
        grouped.setdefault((mlx, keras), []).append(name)
    return [
        f"| {', '.join(f'`{name}`' for name in names)} | {mlx} | {keras} |" for (mlx, keras), names in grouped.items()
    ]


def cell(row: Row, kind: str, layer: Any) -> str:
    """Returns what the table says of a layer in one library: the class, and the tensors that differ."""
    texts = [_text(weight) for weight in row.weights if _is_there(layer, weight)]
    texts += [f"`{theirs}.` for `{ours}.`" for ours, theirs in row.children.items()]
    texts += [f"without `{name}`" for name in row.left_out]
    title = f"{kind}: " if kind else ""
    return title + ("; ".join(texts) or "the same")


def _text(weight: Weight) -> str:
    parts = " and ".join(map(_part, weight.parts))
    axes = f", `{weight.pattern}`" if weight.pattern else ""
    return f"`{weight.name}` from {parts}{axes}"


def _part(part: Part) -> str:
    rows = "" if part.start is None else f"[{part.start}:{part.stop}]"
    return f"`{part.source}{rows}`" + (f" + `{part.plus}{rows}`" if part.plus else "")


def _is_there(layer: Any, weight: Weight) -> bool:
    return set(weight.source_names()) <= layer.state_dict().keys()


def test_the_table_of_the_page_has_the_rows_of_the_code() -> None:
    section = re.split(r"^## Layouts\n", TEXT, flags=re.MULTILINE)[1]
    found = re.findall(r"^\| `.*$", re.split(r"^## ", section, flags=re.MULTILINE)[0], re.MULTILINE)
    assert found == lines(), "\n".join(lines())
