"""`vmap` by batching rules: one run of a function, in which each op computes its results for all slices at once.

The function receives each mapped tensor as a `TracedTensor` whose value is a set of `Rows`: the slices along the first
axis of one tensor. It has the shape of one slice. Dispatch passes an op on such a tensor to the `Batch`, as it passes
one that is differentiated to its tape. The batch calls the op's rule in `emberharmony.rules.batching`, which calls ops
on the whole tensors. A composite without a rule runs through its body, and a primitive without one once per slice.

Transforms nest by the numbers of tapes: a batch and a tape that begin later see the ops first, and run them on values
that belong to the earlier ones. So the tape of a gradient inside of `vmap` records ops on slices, which the batch then
runs for all slices; and a tape outside of `vmap` records the ops on whole tensors.

What the function can do with one slice only, such as reading a value or drawing a random number on the host, ends the
run with an error; `map_slices` then calls the function once for each slice.

Products decide the speed: rows times one matrix are one product of two matrices, and the product of a column and a row,
as in the gradient of a weight for each sample, is a multiplication, because NumPy calls the BLAS once for each matrix
of a stack. An elementwise op costs 2 µs, any other op 4.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from emberharmony.core.errors import EmberError, TracedTensorError, has_message
from emberharmony.core.registry import OPS
from emberharmony.core.state.draws import WithoutDraws
from emberharmony.transforms.rule_registry import BATCHING, BATCHING_ALONG
from emberharmony.transforms.tape import Tape, call_with_packed, is_plain_argument, prepare, run_body, traced_tensors_in
from emberharmony.transforms.traced_tensor import TracedTensor


class UnbatchableError(TracedTensorError):
    """Raised when a function that runs for all slices at once does what each slice has to do by itself."""


class Rows:
    """The slices of a tensor along its first axis.

    Attributes:
        whole: the tensor.
        shape: the shape of one slice.
        dtype: the native dtype.
    """

    __slots__ = ("dtype", "shape", "whole")

    def __init__(self, whole: Any) -> None:
        self.whole, self.dtype = whole, whole.dtype
        shape = whole.shape[1:]
        self.shape: tuple[int, ...] = shape if shape.__class__ is tuple else tuple(shape)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # probed by a library, such as `copy`, also before there is a tensor
            raise AttributeError(name)
        return getattr(self.whole, name)  # such as `itemsize` and `device`, which a slice shares

    def __repr__(self) -> str:
        return f"slice of shape {self.shape} of {self.whole!r}"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without axes has no length")
        return self.shape[0]


class Mapped:
    """What a batching rule gets of a call: the op, the number of slices, and the ops of the backend.

    Attributes:
        bound: the ops of the backend.
        size: the number of slices.
        spec: the op.
    """

    __slots__ = ("bound", "size", "spec")

    def __init__(self, bound: Any, size: int, op: str) -> None:
        self.bound, self.size, self.spec = bound, size, OPS[op]

    def __call__(self, *arguments: Any) -> Any:
        """Calls the op itself, with its arguments in the declared order."""
        function = getattr(self.bound, self.spec.name)
        return call_with_packed(function, self.spec, arguments) if function.__kwdefaults__ else function(*arguments)

    def whole_tensor(self, x: Any) -> Any:
        """Returns a tensor with the mapped axis in front; one that is not mapped is the same in all slices."""
        if x.__class__ is Rows:
            return x.whole
        return self.bound.broadcast_to(x, (self.size, *x.shape))

    def parameter_index(self, name: str) -> int:
        """Returns the index of a parameter of the op."""
        return next(i for i, parameter in enumerate(self.spec.parameters) if parameter.name == name)


def align_ranks(m: Mapped, arguments: Sequence[Any]) -> list[Any]:
    """Returns arguments that broadcast as those of one slice do: rows get axes of length 1 behind the mapped axis."""
    rank = max(len(x.shape) for x in arguments if hasattr(x, "shape"))
    return [with_rank(m, x, rank) if x.__class__ is Rows else x for x in arguments]


def with_rank(m: Mapped, x: Rows, rank: int) -> Any:
    """Returns the whole tensor of rows, whose slices get axes of length 1 in front up to a number of axes."""
    missing_axis_count = rank - len(x.shape)
    return m.bound.reshape(x.whole, (m.size, *(1,) * missing_axis_count, *x.shape)) if missing_axis_count else x.whole


def run_elementwise(m: Mapped, *arguments: Any) -> Any:
    """Returns the result of an op that computes each element from those that broadcasting places together."""
    return m(*align_ranks(m, arguments))


class Batch(Tape):
    """The tape of one run of a function on all slices at once.

    Args:
        backend: the backend.
        size: the number of slices.
    """

    __slots__ = ("size",)
    differentiates = False

    def __init__(self, backend: Any, size: int) -> None:
        super().__init__(backend)
        self.size = size

    def note_read(self, what: str) -> None:
        """Ends the run, because the function reads a value, which differs between slices."""
        raise UnbatchableError(f"{what} reads the value of one slice")

    def note_missing(self, name: str) -> None:
        """Ends the run, because the function looks for an attribute of a native tensor."""
        raise UnbatchableError(f"the attribute {name!r} is that of a native tensor")

    def trace_rows(self, whole: Any) -> TracedTensor:
        """Returns a traced tensor that stands for each slice of a tensor along its first axis."""
        return TracedTensor(Rows(whole), self, None, None)

    def run(self, backend: Any, op: str, arguments: Sequence[Any]) -> Any:
        """Runs an op on all slices at once.

        Raises:
            UnbatchableError: if it has to run in each slice.
        """
        if backend is not self.backend:
            if backend.home is self.backend.home and not backend.is_twin:  # `ops.eval_shape` wraps the backend
                return call_with_packed(getattr(backend.bound, op), OPS[op], backend.adopt_all(arguments))
            raise UnbatchableError(f"{op}() runs on another backend, or is observed")
        spec = OPS[op]
        if spec.facts.elementwise:
            broadcastable_arguments = self._broadcastable_arguments(arguments)
            if broadcastable_arguments is not None:
                return self._box_rows(getattr(backend.bound, op)(*broadcastable_arguments))
        elif op == "matmul":
            a, b = arguments
            if a.__class__ is TracedTensor and a.tape is self and b.__class__ is self.tensor_type:
                rows = a.value
                if len(rows.shape) == 1 and len(b.shape) == 2:  # all slices are the rows of one matrix
                    return self._box_rows(backend.bound.matmul(rows.whole, b))
        unboxed_arguments: list[Any] = []
        for argument in arguments:
            if argument.__class__ is TracedTensor:
                if argument.tape is self:
                    argument = argument.value
                elif argument.tape.level > self.level:
                    return argument.tape.run(backend, op, arguments)
            elif argument.__class__ is not self.tensor_type and not is_plain_argument(
                op, len(unboxed_arguments), argument
            ):
                return self._run_general_case(backend, op, None, arguments)
            unboxed_arguments.append(argument)
        return self._map_op(op, arguments, unboxed_arguments)

    def _broadcastable_arguments(self, arguments: Sequence[Any]) -> list[Any] | None:
        """Returns the arguments of an elementwise op as they broadcast for all slices; None if axes must be added."""
        broadcastable_arguments: list[Any] = []
        rows_rank, unbatched_rank = -1, 0
        for argument in arguments:
            cls = argument.__class__
            if cls is TracedTensor:
                rows = argument.value
                if argument.tape is not self or len(rows.shape) != rows_rank >= 0:
                    return None
                rows_rank = len(rows.shape)
                broadcastable_arguments.append(rows.whole)
            elif cls is float or cls is int:
                broadcastable_arguments.append(argument)
            elif cls is self.tensor_type:
                unbatched_rank = max(unbatched_rank, len(argument.shape))
                broadcastable_arguments.append(argument)
            else:
                return None
        return broadcastable_arguments if unbatched_rank <= rows_rank else None

    def _run_general_case(self, backend: Any, op: str, rule: Any, arguments: Sequence[Any]) -> Any:
        """Runs an op in the general case, with tensors in lists, tuples and keys."""
        if op != "custom_vjp":
            arguments = prepare(backend, OPS[op], arguments)
        latest_tape = max((x.tape for x in traced_tensors_in(arguments)), key=lambda tape: tape.level, default=self)
        if latest_tape is not self:
            return latest_tape.run(backend, op, arguments)
        unboxed_arguments = [self._replace_traced(argument) for argument in arguments]
        if not any(map(has_rows, unboxed_arguments)):
            raise UnbatchableError(f"{op}() has a mapped tensor where it cannot be followed")
        return self._map_op(op, arguments, unboxed_arguments)

    def _replace_traced(self, argument: Any) -> Any:
        """Returns an argument in which `Rows` replace the traced tensors of this batch, also in lists and tuples."""
        cls = argument.__class__
        if cls is TracedTensor and argument.tape is self:
            return argument.value
        if cls is list or cls is tuple:
            return cls(map(self._replace_traced, argument))
        return argument

    def _map_op(self, op: str, arguments: Sequence[Any], op_arguments: Sequence[Any]) -> Any:
        """Returns the result of an op on rows, as rows."""
        if op in ABOUT:
            return ABOUT[op](self.backend.bound, *op_arguments)
        if op == "custom_vjp":
            return self._call_custom_gradient(*op_arguments)
        mapped_op = Mapped(self.backend.bound, self.size, op)
        spec = mapped_op.spec
        rule = BATCHING.get(op) or (run_elementwise if spec.facts.elementwise else BATCHING_ALONG.get(spec.facts.along))
        if rule is None and spec.composite:
            try:
                return run_body(self.backend, spec, arguments)
            except UnbatchableError:
                if spec.takes_callable:
                    raise
                return self._call_by_slices(mapped_op, op_arguments)  # its body reads values
        try:
            result = NotImplemented if rule is None else rule(mapped_op, *op_arguments)
        except EmberError:
            raise
        except Exception as error:
            raise UnbatchableError(f"{op}() refuses an argument") from error
        return self._call_by_slices(mapped_op, op_arguments) if result is NotImplemented else self._box_rows(result)

    def _box_rows(self, result: Any) -> Any:
        if result.__class__ is self.tensor_type:
            return TracedTensor(Rows(result), self, None, None)
        if isinstance(result, (tuple, list)):
            boxed_items = map(self._box_rows, result)
            cls = type(result)
            return list(boxed_items) if cls is list else tuple(boxed_items) if cls is tuple else cls(*boxed_items)
        return self.trace_rows(result)

    def _call_by_slices(self, mapped_op: Mapped, arguments: Sequence[Any]) -> Any:
        """Returns the result of an op that has to run once for each slice."""
        ops = self.backend.bound

        def slice_of(argument: Any, i: int) -> Any:
            cls = argument.__class__
            if cls is Rows:
                return ops.take(argument.whole, i, axis=0)
            return cls(slice_of(x, i) for x in argument) if cls is list or cls is tuple else argument

        return self._box_rows(
            self._stack(
                mapped_op.spec.name,
                [mapped_op(*(slice_of(x, i) for x in arguments)) for i in range(self.size)],
            )
        )

    def _stack(self, op: str, results: Sequence[Any]) -> Any:
        first_result = results[0]
        if isinstance(first_result, (tuple, list)):
            stacked_items = [self._stack(op, column) for column in zip(*results, strict=True)]
            cls = type(first_result)
            return stacked_items if cls is list else tuple(stacked_items) if cls is tuple else cls(*stacked_items)
        if not self.backend.is_tensor(first_result):
            raise UnbatchableError(f"{op}() returns a value of one slice")
        return self.backend.bound.stack(list(results))

    def _call_custom_gradient(
        self, forward: Callable[..., Any], backward: Callable[..., Any], primals: list[Any]
    ) -> Any:
        """Returns the outputs of a function with a derivative of its own, which is mapped too."""
        batched_flags = [x.__class__ is Rows for x in primals]

        def call_in_batch(function: Callable[..., Any], *columns: Any) -> list[Any]:
            inner_batch = Batch(self.backend, self.size)
            outputs = [
                inner_batch.whole_tensor(x) for x in function(*(inner_batch.trace_mapped(column) for column in columns))
            ]
            if any(x.tape is self for x in traced_tensors_in(outputs)):
                raise UnbatchableError("a function with a derivative of its own uses a tensor that is no argument")
            return outputs

        def run_forward(*values: Any) -> list[Any]:
            return call_in_batch(lambda given: forward(*given), list(zip(values, batched_flags, strict=True)))

        def run_backward(values: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
            flagged_values = list(zip(values, batched_flags, strict=True))
            gradients = call_in_batch(backward, flagged_values, [(cotangent, True) for cotangent in cotangents])
            flagged_gradients = zip(gradients, batched_flags, strict=True)
            return [x if is_mapped else self.backend.bound.sum(x, axis=0) for x, is_mapped in flagged_gradients]

        whole_primals = [x.whole if is_mapped else x for x, is_mapped in zip(primals, batched_flags, strict=True)]
        return [self.trace_rows(x) for x in self.backend.bound.custom_vjp(run_forward, run_backward, whole_primals)]

    def trace_mapped(self, column: Sequence[tuple[Any, bool]]) -> list[Any]:
        """Returns tensors, of which those that are flagged as mapped are traced as rows."""
        return [self.trace_rows(x) if is_mapped else x for x, is_mapped in column]

    def whole_tensor(self, x: Any) -> Any:
        """Returns the whole tensor of a result, with the axis of the slices first."""
        if x.__class__ is TracedTensor and x.tape is self:
            return x.value.whole
        ops = self.backend.bound
        return ops.copy(ops.broadcast_to(x, (self.size, *x.shape)))


def has_rows(argument: Any) -> bool:
    """Returns whether an argument is or contains rows."""
    cls = argument.__class__
    return cls is Rows or ((cls is list or cls is tuple) and any(map(has_rows, argument)))


def _refuse_reading(bound: Any, *arguments: Any) -> Any:
    raise UnbatchableError("the op takes the value of one slice out of the function")


def _fill_like(bound: Any, fill: Callable[..., Any], x: Rows, dtype: Any, device: Any) -> Any:
    return fill(x.shape, x.dtype if dtype is None else dtype, bound.get_device(x.whole) if device is None else device)


ABOUT: dict[str, Callable[..., Any]] = {
    "shape": lambda bound, x: x.shape,
    "ndim": lambda bound, x: len(x.shape),
    "size": lambda bound, x: bound.size(x.whole) // x.whole.shape[0],
    "dtype": lambda bound, x: bound.dtype(x.whole),
    "result_type": lambda bound, *xs: bound.result_type(*(x.whole if x.__class__ is Rows else x for x in xs)),
    "get_device": lambda bound, x: bound.get_device(x.whole),
    "eval": lambda bound, *xs: None,
    "ones_like": lambda bound, x, dtype, device: _fill_like(bound, bound.ones, x, dtype, device),
    "zeros_like": lambda bound, x, dtype, device: _fill_like(bound, bound.zeros, x, dtype, device),
    "to_numpy": _refuse_reading,
    "from_dlpack": _refuse_reading,
}
"""Ops that return no tensor, or one that is the same in all slices, so that it need not be mapped."""


def map_at_once(
    backend: Any, fn: Callable[..., Sequence[Any]], tensors: Sequence[Any], axes: Sequence[int], same: bool
) -> list[Any]:
    """Returns the same as `Backend.batched`, by one run of `fn` if that is possible, else by one run for each slice."""
    if not BATCHING:
        importlib.import_module("emberharmony.rules.batching")
    ops = backend.bound
    batch = Batch(backend, tensors[0].shape[axes[0]])
    traced_tensors = [
        batch.trace_rows(ops.moveaxis(x, axis, 0) if axis else x) for x, axis in zip(tensors, axes, strict=True)
    ]
    try:
        if same:
            return [batch.whole_tensor(x) for x in fn(*traced_tensors)]
        with WithoutDraws():
            return [batch.whole_tensor(x) for x in fn(*traced_tensors)]
    except Exception as error:
        if not has_message(error, (EmberError,)):
            raise
        # The function reads a value, or its error should name the shapes of single slices, as it does in a loop.
    results: list[Any] = backend.loop_over_slices(fn, tensors, axes)
    return results
