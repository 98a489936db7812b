"""Writes notebooks for tests."""

import json
from collections.abc import Sequence


def cell(source: Sequence[str], kind: str = "code", metadata: dict[str, object] | None = None) -> dict[str, object]:
    """Returns a cell, as Jupyter writes it."""
    more: dict[str, object] = {"execution_count": 3, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, **more, "metadata": metadata or {}, "source": [*source]}


def notebook(
    *cells: dict[str, object],
    metadata: dict[str, object] | None = None,
    end: str = "\n",
    line_end: str = "\n",
    **options: object,
) -> str:
    """Returns the JSON text of a notebook; `options` are those of `json.dumps`."""
    document = {"cells": cells, "metadata": metadata or {}, "nbformat": 4, "nbformat_minor": 5}
    text = json.dumps(document, **{"indent": 1, "ensure_ascii": False, **options})  # type: ignore[arg-type]
    return (text + end).replace("\n", line_end)
