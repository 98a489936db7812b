"""Programs of NumPy calls: a function of Python without branches that repeats the calls that were recorded.

Calls whose results nothing uses are dropped, equal calls are made once, and functions of NumPy that can write into an
array write into one that no later call reads. They never write into an argument, a constant or a result, nor into an
array with another layout than NumPy would give the result, because the order in which a later sum adds depends on it.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from emberharmony.backend.numpy.indexing_ops import where
from emberharmony.backend.numpy.lowering import METHODS, REDUCTIONS
from emberharmony.transforms.replay import Call, Recorder, Register

_FOREIGN = -1
"""Stands for memory that neither an input nor a call of NumPy owns."""

_WEAK = frozenset((np.add, np.subtract, np.multiply, np.divide))
"""The ufuncs whose operand may be a number, which is made an array once."""

_NAMED = frozenset((np.maximum, np.minimum))
"""The ufuncs that take the array to write into by name only (NumPy 2.4)."""

_KNOWN = frozenset((np.matmul, np.where, where, *REDUCTIONS.values(), *METHODS))
"""Functions, besides ufuncs, whose results have a shape that the shapes of the operands determine.

They return either a view in all calls with such shapes and layouts, or in none.
"""

_LARGE = 2**16
"""Arrays of this many bytes are let go of as soon as nothing needs them."""

_INLINE = (int, bool, type(None), type(...))


class ShapeChangedError(Exception):
    """Raised in a program if the shape of a result depends on values, which have changed."""


def replaying(recorder: Recorder, inputs: int, outputs: Sequence[Any]) -> Callable[..., list[Any]]:
    """Returns the function of the inputs that makes the recorded calls and returns the outputs.

    Args:
        recorder: the record of the calls.
        inputs: the number of inputs.
        outputs: registers, or arrays that are the same for all inputs, of which the function returns copies.
    """
    return _Source(recorder, inputs, outputs).compiled()


def guarding(leaves: Sequence[Any], kind: Callable[[Any], Any]) -> Callable[[Sequence[Any]], bool]:
    """Returns the function of other leaves that tells whether they surely are of the same kinds.

    Args:
        leaves: arrays and other objects.
        kind: returns the kind of a leaf that is no array.
    """
    scope: dict[str, Any] = {"ndarray": np.ndarray, "kind": kind}
    tests = []
    for i, leaf in enumerate(leaves):
        if leaf.__class__ is not np.ndarray:
            scope[f"k{i}"] = kind(leaf)
            tests.append(f"kind(i{i}) == k{i}")
            continue
        scope[f"d{i}"] = leaf.dtype
        layout = f"i{i}.flags.c_contiguous" if leaf.flags.c_contiguous else f"i{i}.strides == {leaf.strides}"
        # The exceptions to `is`, equal dtypes that are other objects, only miss this test.
        tests.append(f"i{i}.__class__ is ndarray and i{i}.dtype is d{i} and i{i}.shape == {leaf.shape} and {layout}")
    inputs = f"{''.join(f'i{i}, ' for i in range(len(leaves)))} = leaves\n " if leaves else ""
    test = " and ".join(tests) or "True"
    exec(f"def fits(leaves):\n if len(leaves) != {len(leaves)}: return False\n {inputs}return {test}\n", scope)
    found: Callable[[Sequence[Any]], bool] = scope["fits"]
    return found


class _Source:
    """The source of a program while it is written."""

    def __init__(self, recorder: Recorder, inputs: int, outputs: Sequence[Any]) -> None:
        self.values, self.inputs, self.given = recorder.values, inputs, outputs
        self.scope: dict[str, Any] = {"wrap": recorder.backend.wrap, "Changed": ShapeChangedError}
        self.named: dict[int, str] = {}
        self.names = {i: f"i{i}" for i in range(inputs)}
        self.merged: set[int] = set()
        self.numbers: dict[tuple[str, Any], np.ndarray] = {}
        calls, places = _distinct(recorder.calls, len(self.values), self.merged)
        shared = self._shared(recorder.calls)
        self.before = self._roots(recorder.calls, shared, [Register(i) for i in range(len(self.values))])
        self.outputs = [places[x] if isinstance(x, Register) else x for x in outputs]
        self.calls = _live(calls, [x for x in self.outputs if isinstance(x, Register)])
        self.roots = self._roots(self.calls, shared, places)
        self.held = {root for x in self.outputs if isinstance(x, Register) for root in self.roots[x]}
        self.targets = self._found_targets()

    def _shared(self, calls: Sequence[Call]) -> dict[int, list[Register]]:
        """Returns for each result the operands of its call with which it may share memory, in the record as it was."""
        found: dict[int, list[Register]] = {}
        for call in calls:
            given = list(dict.fromkeys(_registers((call.args, call.keywords))))
            for result in call.results:
                value = self.values[result]
                # An unknown function may return an operand or a new array, depending on values.
                found[result] = [x for x in given if not _is_known(call) or np.may_share_memory(value, self.values[x])]
        return found

    def _roots(
        self, calls: Sequence[Call], shared: dict[int, list[Register]], places: Sequence[Register]
    ) -> dict[int, frozenset[int]]:
        """Returns for each register those that own the memory of its value; `_FOREIGN` if anything else may own it."""
        roots = {i: frozenset((i,)) for i in range(self.inputs)}
        for call in calls:
            for result in call.results:
                own = _is_known(call) and call.function not in METHODS and self.values[result].base is None
                found = [roots[places[x]] for x in shared[result]]
                if not found or not _is_known(call):
                    found.append(frozenset((int(result) if own else _FOREIGN,)))
                roots[result] = frozenset().union(*found)
        return roots

    def _found_targets(self) -> dict[int, int]:
        """Returns by the place of a call the register whose memory it writes into."""
        ends: dict[int, int] = {}
        for i, call in enumerate(self.calls):
            for register in (*_registers((call.args, call.keywords)), *call.results):
                ends.update(dict.fromkeys(self.roots[register], i))
        targets: dict[int, int] = {}
        free: dict[Any, list[int]] = {}
        for i, call in enumerate(self.calls):
            given = set(_registers((call.args, call.keywords)))
            dying = {root for x in (*given, *call.results) for root in self.roots[x] if ends[root] == i}
            dying = {x for x in dying - self.held if x >= self.inputs}
            if _is_fresh(call) and self.values[call.results[0]].ndim:
                layout = _layout(self.values[call.results[0]])
                fit = [x for x in dying & given if _is_elementwise(call)]
                fit = [x for x in fit if _layout(self.values[x]) == layout]
                # NumPy would copy an operand that is another view of the memory into which it writes.
                fit = [x for x in fit if all(y == x or x not in self.roots[y] for y in given)]
                if fit:
                    targets[i] = fit[0]
                elif free.get(layout):
                    targets[i] = free[layout].pop()
            for root in dying - {targets.get(i)}:
                free.setdefault(_layout(self.values[root]), []).append(root)
        return targets

    def compiled(self) -> Callable[..., list[Any]]:
        """Returns the compiled function."""
        last: dict[int, int] = {}
        for i, call in enumerate(self.calls):
            last.update(dict.fromkeys(map(int, (*_registers((call.args, call.keywords)), *call.results)), i))
        kept = {int(x) for x in self.outputs if isinstance(x, Register)} | set(self.targets.values())
        gone: dict[int, list[int]] = {}
        for register, i in last.items():
            owners = [self.values[root] for root in self.roots[register] if root != _FOREIGN]
            if register >= self.inputs and register not in kept and any(x.nbytes >= _LARGE for x in owners):
                gone.setdefault(i, []).append(register)
        lines = [f"{''.join(f'i{i}, ' for i in range(self.inputs))} = inputs"] if self.inputs else []
        for i, call in enumerate(self.calls):
            lines += self._lines(call, self.targets.get(i))
            if i in gone:
                lines.append("del " + ", ".join(self.names[x] for x in gone[i]))
        lines.append(f"return [{', '.join(self._returned())}]")
        body = "\n ".join(lines)
        exec(compile(f"def replay(inputs):\n {body}\n", "<compiled by ops.compile>", "exec"), self.scope)
        found: Callable[..., list[Any]] = self.scope["replay"]
        return found

    def _lines(self, call: Call, target: int | None) -> list[str]:
        """Returns the statements of a call, which writes into the memory of a register unless that is None."""
        function = call.function
        keywords = [(name, value) for name, value in call.keywords if value is not ...]
        args = self._with_arrays(call)
        parts = [self._text(x) for x in args] + [f"{name}={self._text(value)}" for name, value in keywords]
        wrapped = call.wrapped
        for result in call.results:
            self.names[result] = f"v{result}" if target is None else self.names[target]
        left = ", ".join(self.names[result] for result in call.results)
        if target is not None:
            out = f"out={left}" if function in _NAMED else left
            return [f"{self._named(function)}({', '.join([*parts, out])})"]
        if wrapped and (isinstance(function, np.ufunc) or function in REDUCTIONS.values()):
            # An array without axes, and no scalar, which `wrap` would have to convert.
            if function in REDUCTIONS.values():
                x, axis, _, _, keepdims, *initial = parts
                parts = [x, axis, f"keepdims={keepdims}", *(f"initial={number}" for number in initial)]
            parts.append("out=...")
            wrapped = False
        elif any(value is ... for _, value in call.keywords) and not self.values[call.results[0]].ndim:
            parts.append("out=...")
        right = f"{self._named(function)}({', '.join(parts)})"
        lines = [f"{left}{',' if call.several else ''} = {f'wrap({right})' if wrapped else right}"]
        if not _is_known(call):
            shapes = [(self.names[result], self.values[result].shape) for result in call.results]
            lines += [f"if {name}.shape != {shape}: raise Changed" for name, shape in shapes]
        return lines

    def _with_arrays(self, call: Call) -> tuple[Any, ...]:
        """Returns the arguments of a call with an array for a number beside a tensor, which NumPy converts faster."""
        if call.function not in _WEAK or len(call.args) != 2:
            return call.args
        for number, other in (call.args[::-1], call.args):
            if number.__class__ in (int, float) and isinstance(other, Register):
                dtype = self.values[other].dtype
                if dtype.char in "efd" and math.isfinite(number) and abs(number) <= np.finfo(dtype).max:
                    array = self.numbers.setdefault((repr(float(number)), dtype), np.asarray(number, dtype))
                    return tuple(array if x is number else x for x in call.args)
        return call.args

    def _text(self, value: Any) -> str:
        """Returns the expression for an argument."""
        if isinstance(value, Register):
            return self.names[value]
        if value.__class__ is tuple:
            return f"({''.join(f'{self._text(x)}, ' for x in value)})"
        if value.__class__ is list:
            return f"[{', '.join(map(self._text, value))}]"
        if value is ...:
            return "..."
        return repr(value) if value.__class__ in _INLINE else self._named(value)

    def _named(self, value: Any) -> str:
        """Returns the name of a function or constant."""
        if id(value) not in self.named:
            name = self.named[id(value)] = f"k{len(self.named)}"
            self.scope[name] = value  # which keeps it, so that no other gets its id
        return self.named[id(value)]

    def _returned(self) -> Iterator[str]:
        """Yields the expression of each output."""
        earlier: list[tuple[Register, Register]] = []
        for given, output in zip(self.given, self.outputs, strict=True):
            if not isinstance(output, Register):
                yield f"{self._named(output)}.copy()"
                continue
            # What the function computed twice is computed once, but its results must not share memory.
            merged = self.roots[output] & self.merged
            close = [x for x, y in earlier if merged & self.roots[y] and not self.before[given] & self.before[x]]
            if not close:
                earlier.append((given, output))
            yield self.names[output] + (".copy()" if close else "")


def _distinct(calls: Sequence[Call], count: int, merged: set[int]) -> tuple[list[Call], list[Register]]:
    """Returns the calls without repetitions, and the register that has the value of each register.

    Args:
        calls: the calls.
        count: the number of registers.
        merged: gets the registers that stand for others, too.
    """
    places = [Register(i) for i in range(count)]
    seen: dict[Any, Call] = {}
    kept = []
    for call in calls:
        call = call._replace(args=_moved(call.args, places), keywords=_moved(call.keywords, places))
        found = seen.setdefault((call.function, _key(call.args), _key(call.keywords)), call)
        if found is call:
            kept.append(call)
            continue
        for result, other in zip(call.results, found.results, strict=True):
            places[result] = other
            merged.add(int(other))
    return kept, places


def _live(calls: Sequence[Call], outputs: Sequence[int]) -> list[Call]:
    """Returns the calls on which outputs depend, and all draws, which move a stream on."""
    needed, kept = set(outputs), []
    for call in reversed(calls):
        if call.draws or needed.intersection(call.results):
            needed.update(_registers((call.args, call.keywords)))
            kept.append(call)
    return kept[::-1]


def _is_fresh(call: Call) -> bool:
    """Returns whether NumPy allocates the result of a call, and may instead write it into another array."""
    function = call.function
    if call.several or any(value is not ... for _, value in call.keywords):
        return False
    if isinstance(function, np.ufunc):
        return len(call.args) == function.nin and function.nout == 1
    return False


def _is_elementwise(call: Call) -> bool:
    return isinstance(call.function, np.ufunc) and call.function.signature is None


def _is_known(call: Call) -> bool:
    return isinstance(call.function, np.ufunc) or call.function in _KNOWN


def _layout(value: np.ndarray) -> Any:
    return value.dtype, value.shape, value.strides


def _registers(value: Any) -> Iterator[Register]:
    """Yields the registers in tuples and lists."""
    for item in value:
        if isinstance(item, Register):
            yield item
        elif item.__class__ is tuple or item.__class__ is list:
            yield from _registers(item)


def _moved(value: Any, places: Sequence[Register]) -> Any:
    """Returns tuples and lists with other registers."""
    if isinstance(value, Register):
        return places[value]
    if value.__class__ is tuple or value.__class__ is list:
        return value.__class__([_moved(item, places) for item in value])
    return value


def _key(value: Any) -> Any:
    """Returns what tells an argument apart from others."""
    kind = value.__class__
    if kind is tuple or kind is list:
        return kind, tuple(map(_key, value))
    return kind, id(value) if kind is np.ndarray else int(value) if kind is Register else repr(value)
