"""Writes the function of Python that makes the calls of a program, without loops and branches."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any, ClassVar

from emberharmony.transforms.program import Number, Program, ProgramCall, Register

_INLINE = (int, bool, type(None), type(...))
"""The classes of constants that stand in the source themselves."""


class FunctionSource:
    """The source of a function that makes calls one after the other, while it is written.

    Args:
        program: the program; the functions of its calls are objects of Python.
        targets: by the place of a call the register into whose memory it writes, as its last operand or by `out`.
    """

    by_name: ClassVar[Collection[Any]] = ()
    """The functions that take `out` by name only."""

    def __init__(self, program: Program, targets: Mapping[int, int]) -> None:
        self.program, calls = program, program.calls
        self.names = {i: f"i{i}" for i in range(program.inputs)}
        self.targets = {call.results[0]: targets[i] for i, call in enumerate(calls) if i in targets}
        for x in chain.from_iterable(call.results for call in calls):
            if x.__class__ is Register:
                self.names[x] = self.names[self.targets[x]] if x in self.targets else f"v{x}"
        self.scope: dict[str, Any] = {}
        self._named: dict[int, str] = {}

    def function(self, outputs: Iterable[str], numbers: Sequence[int] = ()) -> Callable[..., list[Any]]:
        """Returns the function of the inputs and of these numbers of a program.

        Args:
            outputs: the expression of each output.
            numbers: the places of the numbers that it takes.
        """
        name_groups = [(self.names[i] for i in range(self.program.inputs)), (f"n{i}" for i in numbers)]
        unpacked_names = [
            (", ".join(names), name) for names, name in zip(name_groups, ("inputs", "numbers"), strict=True)
        ]
        lines = [f"{names}, = {name}" for names, name in unpacked_names if names]
        for i, call in enumerate(self.program.calls):
            lines += self.statements(i, call)
        lines.append(f"return [{', '.join(outputs)}]")
        # The functions and constants are not globals, because torch.compile looks for those in the module.
        body_text = "\n  ".join(["def replay(inputs, numbers=()):", *lines])
        source = f"def make({', '.join(self.scope)}):\n {body_text}\n return replay\n"
        namespace: dict[str, Any] = {"__name__": __name__}
        exec(compile(source, "<compiled by ops.compile>", "exec"), namespace)
        replay_function: Callable[..., list[Any]] = namespace["make"](**self.scope)
        return replay_function

    def statements(self, place: int, call: ProgramCall) -> list[str]:
        """Returns the statements of a call."""
        argument_texts = [
            *map(self.expression, call.args),
            *(f"{name}={self.expression(value)}" for name, value in call.keywords),
        ]
        results_text = ", ".join(map(self.expression, call.results)) + ("," if call.several else "")
        if call.results[0] not in self.targets:
            return [f"{results_text} = {self.name_of(call.function)}({', '.join(argument_texts)})"]
        argument_texts.append(f"out={results_text}" if call.function in self.by_name else results_text)
        return [f"{self.name_of(call.function)}({', '.join(argument_texts)})"]

    def expression(self, value: Any) -> str:
        """Returns the expression for an argument."""
        if value.__class__ is Register:
            return self.names[value]
        if value.__class__ is Number:
            return f"n{value}"
        if value.__class__ is tuple:
            return f"({''.join(f'{self.expression(x)}, ' for x in value)})"
        if value.__class__ is list:
            return f"[{', '.join(map(self.expression, value))}]"
        if value is ...:
            return "..."
        return repr(value) if value.__class__ in _INLINE else self.name_of(value)

    def name_of(self, value: Any) -> str:
        """Returns the name of a function or constant."""
        if id(value) not in self._named:
            constant_name = self._named[id(value)] = f"k{len(self._named)}"
            self.scope[constant_name] = value  # which keeps it, so that no other gets its id
        return self._named[id(value)]


def write_function(
    program: Program,
    functions: Callable[[str], Callable[..., Any]],
    targets: Mapping[int, int] = MappingProxyType({}),
    kind: type[FunctionSource] = FunctionSource,
) -> Callable[..., list[Any]]:
    """Returns the function of inputs and numbers that runs a program, which a library may compile.

    Args:
        program: the program.
        functions: returns the function of a name, such as an op of a backend.
        targets: see `FunctionSource`.
        kind: the class of its source.
    """
    calls = [x._replace(function=functions(x.function)) if isinstance(x.function, str) else x for x in program.calls]
    function_source = kind(replace(program, calls=tuple(calls)), targets)
    return function_source.function(map(function_source.expression, program.outputs), program.numbers)
