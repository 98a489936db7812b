"""`Captured`, the module of this library that runs the captured graph of a PyTorch module."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from emberharmony import Buffer, nn, ops
from emberharmony.core.cells.cell import Cell
from emberharmony.core.errors import ArgumentError, CaptureError, DTypeError, ShapeError, StateDictError, brief
from emberharmony.interop.torch.checking import Report, check_on_backends
from emberharmony.interop.torch.graph import FLOAT, Graph, Slot
from emberharmony.interop.torch.layers import Conv1D, plain_layer
from emberharmony.interop.torch.running import Modes, Runner
from emberharmony.interop.torch.saving import save_program
from emberharmony.interop.torch.structure import build_tree
from emberharmony.nn.state import saved_cells
from emberharmony.ops import use_backend

if TYPE_CHECKING:
    from emberharmony.interop.torch.capture.source import Source


class Captured(nn.Module):
    """A module of PyTorch that runs and trains on every backend; `emberharmony.from_torch` makes it.

    Its parameters and buffers have PyTorch's names. The linear layers and embeddings of the model are layers of this
    library, which `nn.add_lora` and `nn.quantize` find; everything else is a program of calls, one for training and one
    for evaluation.

    Args:
        name: the class of the module.
        members: its parameters, buffers and layers by name.
        constants: the tensors in its graphs that are no buffers, by name.
        modes: its programs.
        training: whether it is in training.
    """

    def __init__(
        self,
        name: str,
        members: Mapping[str, Cell | nn.Module],
        constants: Mapping[str, Buffer],
        modes: Modes,
        training: bool = False,
    ) -> None:
        self.name, self._members, self._constants = name, dict(members), dict(constants)
        self._modes = modes
        self.train(training)

    def members(self) -> Iterator[tuple[str, Any]]:
        yield from self._members.items()

    def put_member(self, key: str, member: Any) -> None:
        self._members[key] = member

    @property
    def graphs(self) -> dict[str, Graph]:
        """The captured graphs by mode, "train" or "eval"."""
        return {mode: runner.graph for mode, runner in self._modes.runners.items()}

    @property
    def constants(self) -> dict[str, Buffer]:
        """The constant tensors in the captured graphs by name."""
        return self._constants

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        runner = self.runner()
        graph = runner.graph
        outputs = runner(self.inputs(runner, args, kwargs))
        written_count = len(graph.written)
        for name, value in zip(graph.written, outputs[:written_count], strict=True):
            self.cell(name).value = value
        return build_tree(graph.result, outputs[written_count:])

    def runner(self) -> Runner:
        """Returns the runner of the graph for the present mode; the graph is captured if that was not done before.

        Raises:
            CaptureError: if the mode was not captured and no module is there to do it.
        """
        mode = "train" if self.training else "eval"
        if mode not in self._modes.runners:
            if self._modes.source is None:
                raise CaptureError(
                    f"{self.name} was saved without its program for {mode}(): save it after a call in this mode"
                )
            graph, constants = self._modes.source.capture(self.training)
            for name, value in constants.items():
                self._constants.setdefault(name, Buffer(value, persistent=False))
            self._modes.runners[mode] = Runner(graph)
        return self._modes.runners[mode]

    def cell(self, name: str) -> Cell:
        """Returns the parameter or buffer of a name, of this module or of a layer in it.

        Raises:
            ArgumentError: if a layer in its place has none of this name, as a quantised one has no weight.
        """
        member = self._members.get(name)
        if member is None:
            path, _, attribute_name = name.rpartition(".")
            member = getattr(self._members.get(path), attribute_name, None)
        if not isinstance(member, Cell):
            raise ArgumentError(f"{self.name} computes with {name}, which the layer in its place lacks")
        return member

    def inputs(self, runner: Runner, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Returns the list of inputs for a captured program: the dtype, parameters, constants, layers and arguments.

        Raises:
            ArgumentError: if an argument is missing, or another constant than at the capture.
            DTypeError: if a tensor has another dtype than at the capture.
            ShapeError: if it has another shape.
        """
        graph, used_inputs = runner.graph, runner.used
        tensor_and_path_by_position = {
            position: (ops.convert_to_tensor(x), path) for position, x, path in graph.signature.tensors(args, kwargs)
        }
        dtype = None if graph.reference is None else self._floating_dtype(graph.reference)
        input_values: list[Any] = []
        length_by_symbol: dict[str, int] = {}
        for index, slot in enumerate(graph.slots):
            if index not in used_inputs:
                input_values.append(None)
            elif slot.kind == "input":
                input_values.append(_cast_argument(*tensor_and_path_by_position[index], slot, dtype, length_by_symbol))
            else:
                input_values.append(self._slot_value(slot, dtype))
        return input_values

    def _floating_dtype(self, name: str) -> Any:
        """Returns the dtype of a floating parameter; for a quantised layer the dtype of its scales."""
        dtype = ops.dtype(self.cell(name).value)
        if ops.isdtype(dtype, "real floating"):
            return dtype
        return ops.dtype(self.cell(f"{name.rpartition('.')[0]}.scales").value)

    def _slot_value(self, slot: Slot, dtype: Any) -> Any:
        if slot.kind == "cell":
            return self.cell(slot.target).value
        if slot.kind == "layer":
            return self._members[slot.target]
        return dtype if slot.kind == "dtype" else self._constants[slot.target].value

    @property
    def source(self) -> "Source | None":
        """The module of PyTorch with its example arguments; None if the program was read from a file."""
        return self._modes.source

    def example(self) -> tuple[Any, dict[str, Any]]:
        """Returns the example arguments as tensors of the active backend.

        Raises:
            ArgumentError: if the program was read from a file.
        """
        if self.source is None:
            raise ArgumentError(f"{self.name} was read from a file, which has no example arguments")
        args, kwargs = self.source.example()
        return args, kwargs

    def check(
        self, backends: Sequence[str] | None = None, *, tolerance: float = 1e-5, gradient_tolerance: float = 1e-4
    ) -> Report:
        """Compares outputs and gradients for the example arguments with those of PyTorch in float64.

        The module of PyTorch computes with the present parameters, and in the mode of this one; what it draws at random
        is other than here, so dropout differs. Where a backend differs, the call is named that gives something else for
        the same arguments.

        Args:
            backends: names of backends; None means all that are installed.
            tolerance: the largest error of an output, as a share of its largest element.
            gradient_tolerance: the same for gradients.

        Raises:
            ArgumentError: if the program was read from a file.

        Example:
            >>> import emberharmony, torch
            >>> net = emberharmony.from_torch(torch.nn.Linear(3, 2), torch.ones(1, 3))
            >>> net.check(["numpy"]).ok
            True
        """
        return check_on_backends(self, backends, tolerance, gradient_tolerance)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the module to a folder, from which `emberharmony.load_program` reads it where PyTorch is missing.

        The folder gets `program.json`, with the program of the mode in which the module is and of the other one if it
        has been used, and `weights.safetensors`. Layers that `nn.add_lora` and `nn.quantize` have put in the place of
        others are saved as they are.

        Raises:
            ArgumentError: if a layer has been replaced by one that a program cannot hold.
            WeightFileError: if the files cannot be written.
        """
        save_program(self, folder)

    def to_torch(self, module: Any) -> Any:
        """Copies the parameters and buffers into the module of PyTorch that was captured, and returns it.

        A layer in the place of a captured one gives the weights that compute the same: those of `LoRALinear.merged` or
        of `nn.dequantize`.

        Args:
            module: the module, or another one of its class and sizes.

        Raises:
            StateDictError: if it has other names.
        """
        with use_backend("torch"):
            member_by_name = {
                name: plain_layer(member) if isinstance(member, nn.Module) else member
                for name, member in self.members()
            }
            plain_module = Captured(self.name, member_by_name, self._constants, self._modes, self.training)
            value_by_name = {name: ops.copy(cell.value) for name, cell in saved_cells(plain_module, True).items()}
            for path, member in member_by_name.items():
                if isinstance(member, nn.Linear) and type(module.get_submodule(path)).__name__ == Conv1D.__name__:
                    value_by_name[f"{path}.weight"] = ops.matrix_transpose(value_by_name[f"{path}.weight"])
        module_state = module.state_dict()
        if set(module_state) - set(value_by_name):
            missing_names = sorted(set(module_state) - set(value_by_name))
            raise StateDictError(
                f"to_torch(): {type(module).__name__} has {brief(missing_names)}, and the program has not"
            )
        module.load_state_dict({name: value_by_name[name] for name in module_state})
        return module

    def __repr__(self) -> str:
        modes_text = " and ".join(self._modes.runners)
        call_count = max((len(runner.graph.program.calls) for runner in self._modes.runners.values()), default=0)
        return (
            f"Captured({self.name}: {len(self.parameters())} parameters, {call_count} calls, captured for {modes_text})"
        )


def _cast_argument(x: Any, path: str, slot: Slot, dtype: Any, lengths: dict[str, int]) -> Any:
    """Returns an argument cast to the dtype that it had at the capture, after checks of its shape and dtype.

    Args:
        x: the tensor.
        path: its name in messages.
        slot: what was there at the capture.
        dtype: the dtype of the parameters.
        lengths: the lengths of the varying axes that are known by now; the function adds others.
    """
    input_shape = tuple(x.shape)
    if len(input_shape) != len(slot.shape) or any(
        n != (lengths.setdefault(m, n) if isinstance(m, str) else m)
        for n, m in zip(input_shape, slot.shape, strict=True)
    ):
        expected_shape = tuple(lengths.get(m, m) if isinstance(m, str) else m for m in slot.shape)
        raise ShapeError(
            f"{path} must have the shape {expected_shape} that it had when the model was captured, not {input_shape}; "
            f"from_torch(..., dynamic=...) says which axes vary"
        )
    target_dtype: Any = dtype if slot.dtype == FLOAT else slot.dtype
    input_dtype = ops.dtype(x)
    if input_dtype == target_dtype:
        return x
    if ops.isdtype(input_dtype, "integral") and ops.isdtype(target_dtype, "integral"):
        return ops.cast(x, target_dtype)
    raise DTypeError(
        f"{path} must have the dtype {target_dtype}, not {input_dtype}; ops.cast(x, {str(target_dtype)!r}) converts it"
    )
