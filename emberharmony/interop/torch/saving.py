"""Writes captured modules to folders with `program.json` and `weights.safetensors`."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emberharmony import Buffer, Parameter, io, nn
from emberharmony.core.cells.cell import Cell
from emberharmony.core.state.files import replace_bytes
from emberharmony.interop.torch.data import graph_to_data
from emberharmony.interop.torch.layers import cells_of, describe_layer

if TYPE_CHECKING:
    from emberharmony.interop.torch.captured import Captured

FORMAT = "emberharmony program"
VERSION = 1
PROGRAM, WEIGHTS = "program.json", "weights.safetensors"
CONSTANT = "constant:"
"""The prefix of the names of constants in the file of weights."""


def save_program(net: "Captured", folder: str | os.PathLike[str]) -> None:
    """Writes a captured module to a folder; see `Captured.save`."""
    if net.source is not None:
        net.runner()  # captures the present mode if necessary
    layer_by_name: dict[str, Any] = {}
    cell_by_name: dict[str, Cell] = {}
    for name, member in net.members():
        if not isinstance(member, nn.Module):
            cell_by_name[name] = member
        else:
            layer_by_name[name] = describe_layer(name, member)
            cell_by_name |= {f"{name}.{cell_name}": cell for cell_name, cell in cells_of(member).items()}
    program_data = {
        "format": FORMAT,
        "version": VERSION,
        "name": net.name,
        "training": net.training,
        "modes": {mode: graph_to_data(graph) for mode, graph in net.graphs.items()},
        "layers": layer_by_name,
        "cells": {name: _cell_entry(cell) for name, cell in cell_by_name.items()},
    }
    tensor_by_name = {**cell_by_name, **{f"{CONSTANT}{name}": cell for name, cell in net.constants.items()}}
    program_folder = Path(folder)
    program_folder.mkdir(parents=True, exist_ok=True)
    io.save(tensor_by_name, program_folder / WEIGHTS)
    with replace_bytes(str(program_folder / PROGRAM)) as stream:
        stream.write(json.dumps(program_data, allow_nan=False).encode())


def _cell_entry(cell: Cell) -> dict[str, Any]:
    if isinstance(cell, Parameter):
        return {"kind": "parameter", "trainable": cell.trainable}
    return {"kind": "buffer", "persistent": isinstance(cell, Buffer) and cell.persistent}
