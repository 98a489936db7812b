"""Runs a captured graph: call by call the first time, afterwards as one compiled Python function."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from emberharmony import ops
from emberharmony.core import selection
from emberharmony.core.errors import UnsupportedOpError
from emberharmony.core.trees.objects import Sealed
from emberharmony.interop.torch.aten import find_function
from emberharmony.interop.torch.graph import FLOAT, LAYER, Graph
from emberharmony.transforms.program import ProgramCall, Register
from emberharmony.transforms.source import FunctionSource

if TYPE_CHECKING:
    from emberharmony.interop.torch.capture.source import Source as Origin

Watch = Callable[[int, ProgramCall, Sequence[Any]], None]
"""A function that gets the number of each call, the call and its results."""


class Runner:
    """Runs a graph on the active backend.

    The first run on a backend, with parameters of one dtype, makes the calls one by one and notes the results that have
    another dtype than PyTorch's: a tensor without axes takes part in the promotion here and does not in PyTorch. Later
    runs are those of a function without loops and branches, which casts these results and drops each tensor after its
    last use. torch.compile, which cannot follow how a function is made, gets one that casts all results.

    Args:
        graph: the graph.

    Attributes:
        functions: the function of each call.
        used: the inputs that calls use, with those that are arguments or the dtype.

    Raises:
        UnsupportedOpError: if the table of ATen lacks an operator.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.functions = [_function_by_name(call.function) for call in graph.program.calls]
        self._ends = _last_uses(graph)
        self.used = {0, *(i for i, slot in enumerate(graph.slots) if slot.kind == "input")}
        self.used.update(x for call in graph.program.calls for x in call.operands)
        self.used.update(x for x in graph.program.outputs if x.__class__ is Register)
        self._compiled: dict[Any, tuple[Callable[..., list[Any]], list[int]]] = {}
        self._careful = self._compile_program(
            [r for call in graph.program.calls for r in call.results if graph.dtypes[r]]
        )

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """Runs the program on its inputs, of which the first is the parameters' dtype, and returns the outputs."""
        backend = selection.active().backend
        program_key = backend.prefix, inputs[0]
        function_and_places = self._compiled.get(program_key) or (self._careful if backend.compiles_source() else None)
        if function_and_places is None:
            cast_registers: set[int] = set()
            outputs = self.run_call_by_call(inputs, cast_registers)
            self._compiled[program_key] = self._compile_program(cast_registers)
            return outputs
        function, places = function_and_places
        try:
            return function(inputs)
        except Exception as error:
            self._annotate_error(error, function, places)
            raise

    def run_call_by_call(
        self, inputs: Sequence[Any], casts: set[int] | None = None, watch: Watch | None = None
    ) -> list[Any]:
        """Runs the program call by call, and returns the outputs.

        Args:
            inputs: the inputs.
            casts: gets the registers whose tensors had to be cast.
            watch: gets each call with its results.
        """
        value_by_register = dict(enumerate(inputs))
        program = self.graph.program
        for call_number, call in enumerate(program.calls):
            try:
                args = _fill_registers(call.args, value_by_register)
                returned_value = self.functions[call_number](
                    *args, **{k: _fill_registers(v, value_by_register) for k, v in call.keywords}
                )
                results = list(returned_value)[: len(call.results)] if call.several else [returned_value]
                results = [
                    self._cast_result(r, x, inputs[0], casts) for r, x in zip(call.results, results, strict=True)
                ]
            except Exception as error:
                error.add_note(f"in {self.graph.describe_call(call_number)}")
                raise
            value_by_register.update(zip(call.results, results, strict=True))
            if watch is not None:
                watch(call_number, call, results)
            for register in self._ends[call_number]:
                value_by_register.pop(register, None)
        return [_fill_registers(output, value_by_register) for output in program.outputs]

    def _cast_result(self, register: int, value: Any, floating: Any, casts: set[int] | None) -> Any:
        """Returns the result of a call cast to the dtype of its register, and records that a cast was needed."""
        dtype = self.graph.dtypes[register]
        if dtype is None:
            return value
        target_dtype: Any = floating if dtype == FLOAT else dtype
        if ops.dtype(value) == target_dtype:
            return value
        if casts is not None:
            casts.add(register)
        return ops.cast(value, target_dtype)

    def _compile_program(self, casts: Collection[int]) -> tuple[Callable[..., list[Any]], list[int]]:
        """Compiles the program to a Python function, and returns it with the number of the call for each line."""
        calls = [call._replace(function=f) for call, f in zip(self.graph.program.calls, self.functions, strict=True)]
        cast_target_by_register = {
            r: Register(0) if self.graph.dtypes[r] == FLOAT else self.graph.dtypes[r] for r in casts
        }
        program = self.graph.program
        line_writer = _Lines(
            program.__class__(program.inputs, tuple(calls), program.outputs), cast_target_by_register, self._ends
        )
        return line_writer.function(map(line_writer.expression, program.outputs)), line_writer.places

    def _annotate_error(self, error: Exception, function: Callable[..., Any], places: list[int]) -> None:
        """Adds a note with the operator and the model's line to an error that a compiled program raised."""
        traceback = error.__traceback__
        while traceback is not None:
            code = traceback.tb_frame.f_code
            line_index = traceback.tb_lineno - code.co_firstlineno - 2  # 2 lines before the first call
            if code is function.__code__ and 0 <= line_index < len(places):
                error.add_note(f"in {self.graph.describe_call(places[line_index])}")
                return
            traceback = traceback.tb_next


class Modes(Sealed):
    """The runners of a captured module's graphs for training and evaluation.

    Args:
        graphs: those that are known, by "train" and "eval".
        source: captures the graph of another mode; None if that is not possible.
    """

    def __init__(self, graphs: Mapping[str, Graph], source: "Origin | None" = None) -> None:
        self.runners = {mode: Runner(graph) for mode, graph in graphs.items()}
        self.source = source

    def __reduce__(self) -> tuple[Any, ...]:
        return Modes, ({mode: runner.graph for mode, runner in self.runners.items()},)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Modes":
        return self


class _Lines(FunctionSource):
    """Writes the source of the Python function that runs a captured program.

    Args:
        program: the program.
        casts: by register the dtype that its result is cast to.
        ends: the registers that each call is the last to use.

    Attributes:
        places: the place of the call for each line behind the first two.
    """

    def __init__(self, program: Any, casts: dict[int, Any], ends: Sequence[Sequence[int]]) -> None:
        super().__init__(program, {})
        self._casts, self._ends = casts, ends
        self.places: list[int] = []

    def statements(self, place: int, call: ProgramCall) -> list[str]:
        """Returns the source lines of one call, with its casts and the deletion of unused registers."""
        statements = super().statements(place, call)
        for register in call.results:
            if register in self._casts:
                name = self.names[register]
                statements.append(
                    f"{name} = {self.name_of(ops.cast)}({name}, {self.expression(self._casts[register])})"
                )
        unused_names = [self.names[x] for x in self._ends[place]]
        statements += [f"del {', '.join(unused_names)}"] if unused_names else []
        self.places += [place] * len(statements)
        return statements


def _function_by_name(name: str) -> Callable[..., Any]:
    if name == LAYER:
        return _call_layer
    function = find_function(name)
    if function is None:
        raise UnsupportedOpError(f"the table of ATen lacks {name}: import the module that registers it")
    return function


def _call_layer(layer: Any, x: Any) -> Any:
    return layer(x)


def _last_uses(graph: Graph) -> list[list[int]]:
    """Returns for each call of a graph the registers that no later call or output uses; inputs are left out."""
    program = graph.program
    last_call_by_register: dict[int, int] = {}
    for call_number, call in enumerate(program.calls):
        last_call_by_register.update(dict.fromkeys([*call.results, *call.operands], call_number))
    output_registers = {x for x in program.outputs if x.__class__ is Register}
    registers_by_end: list[list[int]] = [[] for _ in program.calls]
    for register, call_number in last_call_by_register.items():
        if register >= program.inputs and register not in output_registers:
            registers_by_end[call_number].append(register)
    return registers_by_end


def _fill_registers(value: Any, values: dict[int, Any]) -> Any:
    """Returns an argument with values in the places of registers."""
    cls = value.__class__
    if cls is Register:
        return values[value]
    if cls is list or cls is tuple:
        return cls([_fill_registers(item, values) for item in value])
    return value
