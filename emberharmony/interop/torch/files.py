"""Reads captured modules from files, without PyTorch."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from emberharmony import Buffer, Parameter, io, nn
from emberharmony.core.cells.cell import Cell
from emberharmony.core.errors import ArgumentError, CaptureError, brief
from emberharmony.interop.torch.captured import Captured
from emberharmony.interop.torch.data import graph_of_data
from emberharmony.interop.torch.layers import cells_of, make_layer
from emberharmony.interop.torch.running import Modes
from emberharmony.interop.torch.saving import CONSTANT, FORMAT, PROGRAM, VERSION, WEIGHTS


def load_program(folder: str | os.PathLike[str]) -> Captured:
    """Returns the captured module that `Captured.save` has written; PyTorch is not needed, and no code is executed.

    Args:
        folder: the folder that `save` of a captured program wrote.

    Raises:
        ArgumentError: if there is no program in the folder.
        CaptureError: if the program is damaged, or of a later version.
        UnsupportedOpError: if the table of ATen lacks one of its operators.
        WeightFileError: if the file of weights is damaged.

    Example:
        >>> import emberharmony, tempfile, torch
        >>> net = emberharmony.from_torch(torch.nn.Linear(2, 1), torch.ones(1, 2))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     net.save(folder)
        ...     again = emberharmony.load_program(folder)
        >>> again.state_dict()["bias"].tolist() == net.state_dict()["bias"].tolist()
        True
    """
    program_folder = Path(folder)
    try:
        program_data = json.loads((program_folder / PROGRAM).read_bytes())
    except OSError as error:
        raise ArgumentError(f"load_program(): {program_folder} has no {PROGRAM}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise CaptureError(f"{program_folder / PROGRAM} is damaged: {error}") from error
    if not isinstance(program_data, dict) or program_data.get("format") != FORMAT:
        raise CaptureError(f"{program_folder / PROGRAM} is not a program of emberharmony")
    if program_data.get("version") != VERSION:
        raise CaptureError(
            f"{program_folder / PROGRAM} has version {brief(program_data.get('version'))}, and this release reads "
            f"{VERSION}: install a newer emberharmony"
        )
    return _restore_program(program_data, dict(io.load(program_folder / WEIGHTS)))


def _restore_program(data: Mapping[str, Any], tensors: dict[str, Any]) -> Captured:
    data_by_mode = data.get("modes")
    cells, layers = data.get("cells"), data.get("layers")
    if not isinstance(data_by_mode, dict) or not set(data_by_mode) <= {"train", "eval"}:
        raise CaptureError(f"the program is damaged: modes has {brief(data_by_mode)}")
    if not isinstance(cells, dict) or not isinstance(layers, dict):
        raise CaptureError("the program is damaged: it has no cells or layers")
    graph_by_mode = {mode: graph_of_data(graph) for mode, graph in data_by_mode.items()}
    constant_by_name = {
        name.removeprefix(CONSTANT): Buffer(tensors.pop(name), persistent=False)
        for name in list(tensors)
        if name.startswith(CONSTANT)
    }
    if set(tensors) != set(cells):
        raise CaptureError(
            f"{WEIGHTS} does not belong to {PROGRAM}: {brief(sorted(set(tensors) ^ set(cells)))} is in one of them only"
        )
    cell_by_id: dict[int, Cell] = {}
    member_by_name: dict[str, Any] = {}
    for name, cell_or_layer_data in cells.items():
        tensor = tensors[name]
        if id(tensor) not in cell_by_id:
            cell_by_id[id(tensor)] = _make_cell(name, cell_or_layer_data, tensor)
        member_by_name[name] = cell_by_id[id(tensor)]
    for path, cell_or_layer_data in layers.items():
        cell_names = [name for name in member_by_name if name.startswith(f"{path}.")]
        member_by_name[path] = make_layer(
            path, cell_or_layer_data, {name.removeprefix(f"{path}."): member_by_name.pop(name) for name in cell_names}
        )
    _require_targets(graph_by_mode, member_by_name, constant_by_name)
    return Captured(
        str(data.get("name")), member_by_name, constant_by_name, Modes(graph_by_mode), bool(data.get("training"))
    )


def _make_cell(name: str, entry: Any, tensor: Any) -> Cell:
    cell_kind = entry.get("kind") if isinstance(entry, dict) else None
    if cell_kind == "parameter":
        return Parameter(tensor, trainable=bool(entry.get("trainable", True)))
    if cell_kind == "buffer":
        return Buffer(tensor, persistent=bool(entry.get("persistent", True)))
    raise CaptureError(f"the program is damaged: cell {name} has {brief(entry)}")


def _require_targets(graphs: Mapping[str, Any], members: Mapping[str, Any], constants: Mapping[str, Any]) -> None:
    """Checks that a file has all parameters, buffers, layers and constants that its graphs name."""
    cell_names = {*members}
    for path, member in members.items():
        if isinstance(member, nn.Module):
            cell_names |= {f"{path}.{cell_name}" for cell_name in cells_of(member)}
    for graph in graphs.values():
        for slot in graph.slots:
            target_names = {"cell": cell_names, "layer": members, "constant": constants}.get(slot.kind)
            if target_names is not None and slot.target not in target_names:
                raise CaptureError(f"the program is damaged: it has no {slot.kind} {slot.target!r}")
        for name in [*graph.written, *([graph.reference] if graph.reference else [])]:
            if name not in cell_names:
                raise CaptureError(f"the program is damaged: it has no cell {name!r}")
