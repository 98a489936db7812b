"""Reads, assigns and casts the parameters and buffers of a module by name."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

from emberharmony import Buffer, ops, to_backend
from emberharmony.core import selection
from emberharmony.core.cells.cell import Cell
from emberharmony.core.errors import (
    ArgumentTypeError,
    DTypeError,
    EmberError,
    StateDictError,
    UninitializedParameterError,
    brief,
    suggest,
)
from emberharmony.core.names.layouts import require_layout
from emberharmony.core.state.commits import Step
from emberharmony.nn import walk

Values: TypeAlias = Mapping[str, Any]
"""Tensors of any backend, arrays or lists by name."""


class Loaded(NamedTuple):
    """The result of `load_state_dict`: the names of loaded, missing, unexpected and cast tensors.

    Attributes:
        loaded: the names whose tensors were assigned.
        missing: the names in the module that were not given.
        unexpected: the names given that the module does not have.
        cast: the names whose tensors were cast to the dtype of the parameter.
    """

    loaded: list[str]
    missing: list[str]
    unexpected: list[str]
    cast: list[str]


def saved_cells(module: walk.Holder, persistent_only: bool) -> dict[str, Cell]:
    """Returns the parameters and buffers of a module by all their names."""
    return {
        name: cell
        for name, cell in walk.named_cells_of_all_places(module)
        if not (persistent_only and isinstance(cell, Buffer) and not cell.persistent)
    }


def state_dict(module: walk.Holder, host: bool, persistent_only: bool, layout: str) -> dict[str, Any]:
    """Returns the tensors of a module by name; see `Module.state_dict`."""
    cell_by_name = saved_cells(module, persistent_only)
    value_by_name = {name: _tensor_of_cell(module, name, cell) for name, cell in cell_by_name.items()}
    require_layout(layout)
    if layout != "torch":
        value_by_name = _layout_module().to_layout(module, _shape_by_name(module, cell_by_name), value_by_name, layout)
    return {name: ops.to_numpy(value) for name, value in value_by_name.items()} if host else value_by_name


def loading_steps_and_names(
    module: walk.Holder,
    values: Values,
    strict: bool,
    rename: Callable[[str], str] | None,
    keep_dtype: bool,
    layout: str,
) -> tuple[list[Step], Loaded]:
    """Returns the assignments of tensors to a module by name, and which names they load; see `load_state_dict`."""
    if not isinstance(values, Mapping):
        advice = "; io.load_model(model, path) reads a file" if isinstance(values, (str, os.PathLike)) else ""
        raise ArgumentTypeError(f"load_state_dict() takes a dict from names to tensors, not {brief(values)}{advice}")
    require_layout(layout)
    value_by_new_name = _rename_keys(values, rename)
    cell_by_name = saved_cells(module, persistent_only=True)
    foreign_names: list[str] = []
    fault_texts: list[str] = []
    if layout != "torch":
        tensor_by_name = {name: _active_tensor(name, value) for name, value in value_by_new_name.items()}
        value_by_new_name, foreign_names, fault_texts = _layout_module().read_tensors(
            module, cell_by_name, _shape_by_name(module, cell_by_name), tensor_by_name, layout, strict
        )
    loaded_cells = {cell for name, cell in cell_by_name.items() if name in value_by_new_name}
    missing_names = [
        name for name, cell in cell_by_name.items() if name not in value_by_new_name and cell not in loaded_cells
    ]
    unexpected_names = [name for name in value_by_new_name if name not in cell_by_name]
    if strict and layout == "torch":
        fault_texts += [f"missing: {name}{suggest(name, unexpected_names)}" for name in missing_names]
        fault_texts += [f"unexpected: {name}{suggest(name, cell_by_name)}" for name in unexpected_names]
    new_tensors, cast_names, tensor_faults = _new_tensors(module, cell_by_name, value_by_new_name, keep_dtype)
    fault_texts += tensor_faults
    if fault_texts:
        given_tensors = _rename_keys(values, rename)
        hint = (layout == "torch" and _prefix_hint(cell_by_name, given_tensors)) or _layout_hint(
            module, cell_by_name, given_tensors, layout
        )
        hint = hint or (_hint_to_load_rest(fault_texts, given_tensors) if layout == "torch" else "")
        raise StateDictError(
            f"load_state_dict() of {type(module).__name__} changed nothing: {_faults_text(fault_texts)}{hint}"
        )
    loaded_names = Loaded(
        [name for name in cell_by_name if name in value_by_new_name],
        missing_names,
        unexpected_names + foreign_names,
        cast_names,
    )
    return [cell.replace_step(tensor) for cell, tensor in new_tensors.items()], loaded_names


def _new_tensors(
    module: walk.Holder, cells: Mapping[str, Cell], values: Mapping[str, Any], keep_dtype: bool
) -> tuple[dict[Cell, Any], list[str], list[str]]:
    """Returns the new tensor of each cell, the names of tensors that are cast, and texts on tensors that do not fit."""
    new_tensor_by_cell: dict[Cell, Any] = {}
    cast_names: list[str] = []
    fault_texts: list[str] = []
    for name, cell in cells.items():
        if name in values:
            old_tensor = _tensor_of_cell(module, name, cell)
            try:
                tensor = _tensor_with_own_memory(values[name])
                _require_matching_tensor(tensor, old_tensor)
                dtype = ops.dtype(old_tensor)
                if keep_dtype and ops.dtype(tensor) != dtype:
                    tensor = ops.cast(tensor, dtype)
                    cast_names.append(name)
                if cell in new_tensor_by_cell and not _is_equal(new_tensor_by_cell[cell], tensor):
                    raise StateDictError("is the same parameter as another name, whose value differs")
                new_tensor_by_cell[cell] = tensor
            except EmberError as error:
                fault_texts.append(f"wrong: {name}: {error}")
    return new_tensor_by_cell, cast_names, fault_texts


def converted_state_dict(module: walk.Holder, values: Values, source: str, layout: str) -> dict[str, Any]:
    """Returns tensors of a module in another layout; see `Module.convert_state_dict`."""
    require_layout(source, "source")
    require_layout(layout)
    if not isinstance(values, Mapping):
        raise ArgumentTypeError(f"convert_state_dict() takes a dict from names to tensors, not {brief(values)}")
    cell_by_name = saved_cells(module, persistent_only=True)
    shape_by_name = _shape_by_name(module, cell_by_name)
    tensor_by_name = {name: _active_tensor(name, value) for name, value in values.items()}
    own_tensors, _, fault_texts = _layout_module().read_tensors(
        module, cell_by_name, shape_by_name, tensor_by_name, source, True
    )
    if fault_texts:
        hint = _layout_hint(module, cell_by_name, tensor_by_name, source, "source")
        raise StateDictError(f"convert_state_dict() of {type(module).__name__}: {_faults_text(fault_texts)}{hint}")
    tensor_by_cell = {cell: own_tensors[name] for name, cell in cell_by_name.items() if name in own_tensors}
    tensors_by_name = {name: tensor_by_cell[cell] for name, cell in cell_by_name.items()}
    converted_tensors: dict[str, Any] = _layout_module().to_layout(module, shape_by_name, tensors_by_name, layout)
    return converted_tensors


def _layout_module() -> Any:
    # The module is imported only here, because only callers with another layout than PyTorch's need its table.
    from emberharmony.nn.layouts import model

    return model


def _layout_hint(
    module: walk.Holder,
    places_by_name: Mapping[str, Cell],
    given_tensors: Values,
    layout: str,
    argument: str = "layout",
) -> str:
    """Returns a hint for messages that names the other layout which the tensors fit; empty if there is none."""
    try:
        layout_hint: str = _layout_module().fitting_layout_hint(
            module, _shape_by_name(module, places_by_name), given_tensors, layout, argument
        )
    except UninitializedParameterError:
        return ""
    return layout_hint


def _prefix_hint(own_keys: Iterable[str], given_keys: Iterable[str]) -> str:
    """Returns a hint for messages on a prefix by which all names differ; empty if there is none."""
    own_names, given_names = sorted(own_keys), sorted(given_keys)
    if not own_names or own_names == given_names or len(own_names) != len(given_names):
        return ""
    prefix = given_names[0].removesuffix(own_names[0])
    if given_names == [prefix + name for name in own_names]:
        return f"\nall names have {prefix!r} before them: pass rename=lambda name: name.removeprefix({prefix!r})"
    prefix = own_names[0].removesuffix(given_names[0])
    if own_names == [prefix + name for name in given_names]:
        return f"\nall names lack {prefix!r} before them: pass rename=lambda name: {prefix!r} + name"
    return ""


def _hint_to_load_rest(faults: Sequence[str], given_tensors: Values) -> str:
    """Returns a hint for messages on how to load only the tensors that fit, if some do not."""
    if len(faults) < len(given_tensors) and all(fault.startswith("wrong: ") for fault in faults):
        return (
            "\nmake the model with the sizes of these tensors; or, to load the rest, leave these out of the dict (that "
            "of a file is io.load(path)) and pass strict=False"
        )
    if any(not fault.startswith("wrong: ") for fault in faults):
        return (
            "\nthe model must be made as the one that was saved; to load only the names that both have, pass "
            "strict=False"
        )
    return ""


def _shape_by_name(module: walk.Holder, cells_by_name: Mapping[str, Cell]) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of parameters and buffers by name, without moving them to another backend."""
    shape_by_name = {}
    for name, cell in cells_by_name.items():
        with _add_name_to_error(module, name):
            tensor, home = cell.tensor_and_home()
        shape_by_name[name] = tuple((tensor.bits if home is None else tensor).shape)
    return shape_by_name


def cast_steps(cells: Iterable[Cell], dtype: Any, device: Any) -> list[Step]:
    """Returns the assignments that cast floating parameters and buffers and move all to a device.

    Raises:
        DTypeError: if the dtype is not floating.
    """
    if dtype is not None and not ops.dtype(ops.zeros((), dtype)).is_floating:
        raise DTypeError(f"to() casts parameters to a floating dtype, not {dtype}")

    def cast_and_move(tensor: Any) -> Any:
        if dtype is not None and ops.dtype(tensor).is_floating:
            tensor = ops.cast(tensor, dtype)
        return tensor if device is None else ops.to_device(tensor, device)

    return [step for cell in cells for step in cell.steps_of_change(cast_and_move)]


def _tensor_of_cell(module: walk.Holder, name: str, cell: Cell) -> Any:
    """Returns the tensor of a parameter or buffer; an error that it has no shape yet gets its name.

    Raises:
        UninitializedParameterError: if its shape is not known yet; the message has the name.
    """
    with _add_name_to_error(module, name):
        return cell.value


@contextmanager
def _add_name_to_error(module: walk.Holder, name: str) -> Iterator[None]:
    """Adds a parameter's name to the error that it has no shape yet, if a block raises this error."""
    try:
        yield
    except UninitializedParameterError as error:
        raise UninitializedParameterError(
            f"{name} of {type(module).__name__} has no shape yet, because its layer has not seen an input: call "
            f"nn.build(model, example) before the model is used"
        ) from error


def _rename_keys(values: Values, rename: Callable[[str], str] | None) -> dict[str, Any]:
    if rename is None:
        return dict(values)
    value_by_new_name: dict[str, Any] = {}
    old_name_by_name: dict[str, str] = {}
    for name, value in values.items():
        new_name = rename(name)
        if not isinstance(new_name, str):
            raise ArgumentTypeError(f"rename() must return the new name, got {brief(new_name)} for {name!r}")
        if new_name in value_by_new_name:
            raise StateDictError(
                f"rename() gives {old_name_by_name[new_name]!r} and {name!r} the same name {new_name!r}"
            )
        value_by_new_name[new_name], old_name_by_name[new_name] = value, name
    return value_by_new_name


def _tensor_with_own_memory(value: Any) -> Any:
    """Returns a tensor of any backend, or an array or list, as a tensor of the active backend with its own memory."""
    return ops.copy(_tensor_of_value(value))


def _active_tensor(name: str, value: Any) -> Any:
    """Returns a tensor of any backend, or an array or list, as a tensor of the active backend.

    Raises:
        StateDictError: if it is none; the message has the name.
    """
    try:
        return _tensor_of_value(value)
    except EmberError as error:
        raise StateDictError(f"{name}: {error}") from error


def _tensor_of_value(value: Any) -> Any:
    if isinstance(value, (list, tuple, int, float, complex)):
        return ops.convert_to_tensor(value)
    if isinstance(value, Cell):
        value = value.value
    active_tensor = to_backend([value], selection.active().backend)[0]
    if not ops.is_tensor(active_tensor):
        raise ArgumentTypeError(f"expected a tensor, array or list, got {brief(value)}")
    return active_tensor


def _require_matching_tensor(tensor: Any, old_tensor: Any) -> None:
    """Checks that a new tensor has the shape of the old one, and a dtype that can be cast to its dtype.

    Raises:
        StateDictError: if the shapes differ, or the kinds of dtypes.
    """
    if tuple(tensor.shape) != tuple(old_tensor.shape):
        raise StateDictError(f"has shape {tuple(tensor.shape)}, expected {tuple(old_tensor.shape)}")
    new_dtype, old_dtype = ops.dtype(tensor), ops.dtype(old_tensor)
    if new_dtype.kind != old_dtype.kind and not (new_dtype.is_integer and old_dtype.is_integer):
        raise StateDictError(f"has dtype {new_dtype.name}, which cannot become {old_dtype.name}")


def _is_equal(value: Any, other_value: Any) -> bool:
    return bool(
        ops.array_equal(value, other_value)
    )  # emberlint: ignore[precision-cast] -- only for parameters in two places


def _faults_text(faults: list[str]) -> str:
    faults_text = "".join(f"\n  {fault}" for fault in faults[:50])
    return faults_text if len(faults) <= 50 else f"{faults_text}\n  and {len(faults) - 50} more"
