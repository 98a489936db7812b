"""`ops.compile` on NumPy: a function is recorded once for each kind of arguments, and then only its NumPy calls run.

Cells that the function reads are further inputs, and those that it assigns are further outputs: each call reads and
assigns them again. So it is with gradients that `ops.backward` adds, and the steps of optimizers are made at the end of
each call. A call whose arguments no program takes is recorded while it runs, so that the function runs once.

A draw of random numbers is a call that each replay makes again, that is never merged with an equal one, and that is
made even if nothing uses its result, because it moves its stream on. A program is guarded by the structure of the
arguments, the shape, dtype and layout of each array (in which order a sum adds depends on it), each other leaf, and the
default float; a function has at most 64 programs, so a number that changes in each call ends in the function itself. A
function runs uncompiled where it cannot be recorded: a read of a value, any other random number, a tensor of another
tape. Where a result has another shape than when it was recorded, or a call raises an error, the function itself runs.

An optimizer's step is a call with gradients from the program, so its numbers, the programs of its rule and the tensors
over which it writes are those of the uncompiled step, and so are the bits. PyTorch traced the frames of a step in parts
and compiled them anew for each count, so the step is left out of what it traces (`Backend.run_uncompiled`).
"""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from emberharmony.backend.numpy.flow.lowering import NumpyRecorder
from emberharmony.backend.numpy.flow.replay import ShapeChangedError, guard_of, replay_of
from emberharmony.backend.shared.compilation import constant_kind, hashable_form
from emberharmony.core.cells.blocks import Assignments, ReadFromOutside, cells_of_open_blocks, newly_assigned_tensors
from emberharmony.core.cells.cell import Cell
from emberharmony.core.cells.effects import Effects
from emberharmony.core.dtypes import default_float
from emberharmony.core.errors import TracedTensorError
from emberharmony.core.state.checked_mode import checking
from emberharmony.core.state.draws import HostDrawError, NotNowError, Recording, Rewinding, is_without_draws
from emberharmony.core.tracing import TensorProxy
from emberharmony.core.trees.tree import LEAF, TreeDef, tree_flatten, tree_unflatten
from emberharmony.transforms.program import Register
from emberharmony.transforms.recorder import Recorder, UnrecordableError
from emberharmony.transforms.traced_tensor import TracedTensor

if TYPE_CHECKING:
    from emberharmony.backend.numpy.flow.engines import Engines

MOST = 64
"""A function has at most so many programs; calls with further kinds of arguments run it as it is."""

_TRIES = 4
"""So often a function may read cells that no earlier run has read, as by other threads, before it is given up."""


class NumpyFunction:
    """A function that is recorded once for each structure, shape, dtype and number among its arguments.

    Args:
        fn: the function.
        backend: the backend.
        engines: what chooses the library that runs the programs; None leaves them to NumPy.
    """

    def __init__(self, fn: Callable[..., Any], backend: Any, engines: "Engines | None" = None) -> None:
        self._fn, self._backend, self._engines = fn, backend, engines
        self._program_by_key: dict[Any, _Program | None] = {}
        self._cells: dict[Any, list[Cell]] = {}
        self._tries: dict[Any, int] = {}
        self._last_program: _Program | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the result of the function, by a recorded program if one fits the arguments."""
        if checking():
            return self._fn(*args, **kwargs)
        last_program = self._last_program
        if last_program is not None and last_program.flat and not kwargs and last_program.fits(args):
            if last_program.is_pure:
                try:
                    return last_program.result.fill(last_program.replay(args))
                except Exception:  # noqa: BLE001  (it is raised again, and met, below)
                    pass
            return self._run_program(last_program, args, [], args, kwargs)
        leaves, structure = tree_flatten((args, kwargs))
        try:
            structure_key = hashable_form(structure)
            last_fits = last_program is not None and structure_key == last_program.frame and last_program.fits(leaves)
        except TypeError:  # the tree holds a value that is not hashable, so no program can be looked up by it
            return self._fn(*args, **kwargs)
        if last_program is not None and last_fits:
            cell_tensors = [cell.value for cell in last_program.cells]
            if last_program.holds(cell_tensors):
                return self._run_program(last_program, leaves, cell_tensors, args, kwargs)
        key = (default_float(), structure_key, *map(_leaf_kind, leaves))
        try:
            cells = self._cells.get(key)
        except TypeError:  # a leaf is not hashable
            return self._fn(*args, **kwargs)
        if cells is None:
            cells = list(dict.fromkeys(leaf for leaf in leaves if isinstance(leaf, Cell)))
        cell_tensors = [cell.value for cell in cells]
        program_key = (key, *map(_leaf_kind, cell_tensors))
        if program_key not in self._program_by_key:
            return self._record(key, program_key, leaves, structure, cells, cell_tensors, args, kwargs)
        program = self._program_by_key[program_key]
        if program is None:
            return self._fn(*args, **kwargs)
        self._last_program = program
        return self._run_program(program, leaves, cell_tensors, args, kwargs)

    def _run_program(
        self,
        program: "_Program",
        leaves: Sequence[Any],
        cell_tensors: list[Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Returns the result of a program, or, if the program fails, of the function itself."""
        result_template = program.result
        if result_template.effects is not None and (
            is_without_draws() or cells_of_open_blocks() or not result_template.effects.cells_lack_gradients()
        ):
            return self._fn(*args, **kwargs)
        streams = Rewinding() if program.draws else None
        try:
            if streams is None:
                arrays = program(leaves, cell_tensors)
            else:
                with streams:
                    arrays = program(leaves, cell_tensors)
        except ShapeChangedError:
            self._program_by_key[program.key] = None
            self._last_program = None
        except Exception:  # noqa: BLE001  (the function raises the same error, typed, from the line of the user's code)
            pass
        else:
            cell_tensors.clear()  # so that an optimizer may write over the arrays of the cells
            return result_template.fill(arrays)
        if streams is not None:
            streams.rewind()
        return self._fn(*args, **kwargs)

    def _record(
        self,
        key: Any,
        program_key: Any,
        leaves: list[Any],
        structure: TreeDef,
        cells: list[Cell],
        cell_tensors: list[Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Runs the function while its calls are recorded; returns the result."""
        is_inside_block = is_without_draws() or bool(cells_of_open_blocks())
        if (
            is_inside_block
            or len(self._program_by_key) >= MOST
            or not all(map(self._is_recordable, (*leaves, *cell_tensors)))
        ):
            return self._fn(*args, **kwargs)
        array_indices = [i for i, leaf in enumerate(leaves) if leaf.__class__ is np.ndarray]
        input_tensors = [*(leaves[i] for i in array_indices), *cell_tensors]
        # Record with views, new objects, so that an array that the function also closes over stays a constant there.
        recorder = NumpyRecorder(self._backend, [x.view() for x in input_tensors], of_ops=self._engines is not None)
        traced_leaves = list(leaves)
        for register, leaf_index in enumerate(array_indices):
            traced_leaves[leaf_index] = recorder.tensor(register)
        tensor_by_cell = {cell: recorder.tensor(len(array_indices) + i) for i, cell in enumerate(cells)}
        effects = Effects()
        draw_recording = Recording(recorder.draw, effects)
        args_traced, kwargs_traced = tree_unflatten(structure, traced_leaves)
        try:
            with draw_recording, Assignments(tensor_by_cell) as value_by_cell, ReadFromOutside() as value_by_read_cell:
                value_by_cell_before = dict(value_by_cell)
                fn_result = self._fn(*args_traced, **kwargs_traced)
                value_by_changed_cell = newly_assigned_tensors(value_by_cell, value_by_cell_before)
            effects.end_part()
            if recorder.lost:
                raise UnrecordableError(recorder.obstacle)
            known_cells = {*cells, *value_by_read_cell, *(x for x in leaves if isinstance(x, Cell))}
            result_template = _Result(recorder, fn_result, value_by_changed_cell, effects, known_cells)
        except Exception as error:
            if not _is_due_to_recording(error):
                raise
            self._tries[key] = self._tries.get(key, 0) + 1
            if not isinstance(error, NotNowError) or self._tries[key] > _TRIES:
                self._program_by_key[program_key] = None
            draw_recording.rewind()
            return self._fn(*args, **kwargs)
        finally:
            recorder.closed = True
        new_cells = [
            cell
            for cell in value_by_read_cell
            if cell not in tensor_by_cell and not isinstance(cell.tensor_and_home()[0], TensorProxy)
        ]
        if recorder.obstacle or (new_cells and self._tries.get(key, 0) == _TRIES):
            self._program_by_key[program_key] = None
        elif new_cells:  # their values were constants; the next call has them as inputs
            self._cells[key] = [*cells, *new_cells]
            self._tries[key] = self._tries.get(key, 0) + 1
        else:
            replay = replay_of(recorder, len(input_tensors), result_template.outputs)
            program = _Program(
                replay, program_key, structure, leaves, array_indices, cells, cell_tensors, result_template
            )
            program.draws = any(call.draws for call in recorder.calls)
            program.is_pure = not program.draws and result_template.effects is None
            self._program_by_key[program_key] = self._last_program = program
            if self._engines is not None:
                self._engines.try_on_program(program, recorder, input_tensors, result_template.outputs)
        register_values = [
            *input_tensors,
            *recorder.values[len(input_tensors) :],
        ]  # the arrays themselves, not the views
        return result_template.fill(
            [register_values[x] if x.__class__ is Register else x.copy() for x in result_template.outputs]
        )

    def _is_recordable(self, leaf: Any) -> bool:
        """Returns whether an argument is neither a traced tensor nor an array of a dtype that the backend lacks."""
        if leaf.__class__ is np.ndarray:
            return leaf.dtype in self._backend.dtypes.neutral
        return not isinstance(leaf, (TensorProxy, np.ndarray)) and not (isinstance(leaf, Cell) and leaf.is_temporary)


def _is_due_to_recording(error: Exception) -> bool:
    """Returns whether an error means that the function cannot be recorded, although it may run unrecorded."""
    if isinstance(error, (UnrecordableError, TracedTensorError, HostDrawError)):
        return True
    # This is Python's error for an operator or an attribute that arrays have, but traced tensors lack.
    return isinstance(error, (TypeError, AttributeError)) and re.search("(?i)traced ?tensor", str(error)) is not None


class _Result:
    """The result and the assignments of a recorded function, with placeholders for the arrays.

    Args:
        recorder: the record of its calls.
        returned: what it returned.
        changed: the tensor that each cell got.
        effects: what it did besides.
        known: the cells that may be in the result as they are.

    Raises:
        UnrecordableError: if the result has something that each call must make anew.

    Attributes:
        outputs: the registers or constant arrays in the result, then those for the cells, then those for the effects.
        effects: what to do at the end; None if nothing.
    """

    def __init__(
        self,
        recorder: Recorder,
        fn_result: Any,
        value_by_cell: dict[Cell, Any],
        effects: Effects,
        known_cells: set[Cell],
    ) -> None:
        self._recorder = recorder
        leaves, self._structure = tree_flatten(fn_result)
        self.outputs: list[Any] = []
        self._leaves = [self._template_leaf(leaf, known_cells) for leaf in leaves]
        self._cells = list(value_by_cell)
        self._start = len(self.outputs)
        for tensor in (*value_by_cell.values(), *effects.replay_inputs()):
            self._add_output(tensor)
        self.effects = effects if effects.has_effects else None
        is_pure = not self._cells and self.effects is None
        self._has_arrays_only = is_pure and all(leaf.__class__ is _Place and leaf.cell is None for leaf in self._leaves)
        self._is_single_array = self._has_arrays_only and self._structure is LEAF
        self._is_tuple = self._has_arrays_only and self._structure == tree_flatten((0,) * len(leaves))[1]
        del self._recorder

    def _template_leaf(self, leaf: Any, known_cells: set[Cell]) -> Any:
        if leaf.__class__ is np.ndarray or isinstance(leaf, TensorProxy):
            return _Place(self._add_output(leaf))
        if not isinstance(leaf, Cell):
            return leaf
        tensor = leaf.tensor_and_home()[0]
        if isinstance(tensor, TensorProxy):
            return _Place(self._add_output(tensor), leaf.copy_holding(None))
        if leaf not in known_cells:
            raise UnrecordableError("it returns a new cell")
        return leaf

    def _add_output(self, tensor: Any) -> int:
        if isinstance(tensor, TensorProxy):
            if tensor.__class__ is not TracedTensor or tensor.tape is not self._recorder:
                raise UnrecordableError("it closes over a tensor that is being differentiated")
            tensor = tensor.key
        self.outputs.append(tensor)
        return len(self.outputs) - 1

    def fill(self, arrays: list[Any]) -> Any:
        """Returns the result with arrays in its placeholders, after assigning to cells and repeating the effects."""
        if self._is_single_array:
            return arrays[0]
        if self._is_tuple:
            return tuple(arrays)
        if self._has_arrays_only:
            return tree_unflatten(self._structure, arrays)
        leaves = [leaf.fill(arrays) if leaf.__class__ is _Place else leaf for leaf in self._leaves]
        cell_end = self._start + len(self._cells)
        for cell, array in zip(self._cells, arrays[self._start : cell_end], strict=True):
            cell.value = array
        if self.effects is not None:
            self.effects.replay(arrays[cell_end:])
        return tree_unflatten(self._structure, leaves)


class _Place:
    """A placeholder for an array in a result, or for a new cell that holds the array."""

    def __init__(self, place: int, cell: Cell | None = None) -> None:
        self._place, self.cell = place, cell

    def fill(self, arrays: list[Any]) -> Any:
        """Returns the array for this placeholder, or a new cell that holds the array."""
        array = arrays[self._place]
        return array if self.cell is None else self.cell.with_tensor(array)


class _Program:
    """The recorded NumPy calls of a function, for calls of it whose arguments differ only in the values of arrays.

    Attributes:
        key: its place among the programs of the function.
        fits: returns whether the program surely takes these leaves of arguments of its structure.
        holds: returns whether it surely takes these arrays of cells.
        frame: the structure of the arguments in a hashable form.
        flat: whether the arguments are nothing but arrays, each of which is an input.
        cells: the cells whose arrays are further inputs.
        result: makes the result of the function of the arrays.
        replay: the function of the inputs that returns the arrays; an engine may take its place.
        draws: whether it draws random numbers.
        is_pure: whether it neither draws nor does anything else than compute the result.
    """

    draws = is_pure = False

    def __init__(
        self,
        replay: Callable[..., list[Any]],
        key: Any,
        structure: TreeDef,
        leaves: list[Any],
        places: list[int],
        cells: list[Cell],
        cell_tensors: list[Any],
        result: _Result,
    ) -> None:
        self.replay, self._places, self.result = replay, places, result
        self.key, self.frame, self.cells = key, hashable_form(structure), cells
        self.fits, self.holds = guard_of(leaves, _leaf_kind), guard_of(cell_tensors, _leaf_kind)
        self._has_arrays_only = len(places) == len(leaves)
        positional, named_arguments = structure.children
        self.flat = (
            self._has_arrays_only
            and not cells
            and not named_arguments.leaves
            and positional.children == (LEAF,) * len(leaves)
        )

    def __call__(self, leaves: Sequence[Any], cell_tensors: list[Any]) -> list[Any]:
        """Returns the arrays that the recorded calls compute from the arguments' arrays and the cells."""
        inputs = leaves if self._has_arrays_only else [leaves[i] for i in self._places]
        return self.replay([*inputs, *cell_tensors] if cell_tensors else inputs)


def _leaf_kind(leaf: Any) -> Any:
    """Returns the key of an argument of a program: an array's shape, dtype and layout, else itself and its class."""
    if leaf.__class__ is np.ndarray:
        return leaf.shape, leaf.dtype, None if leaf.flags.c_contiguous else leaf.strides
    return constant_kind(leaf)
