"""What every backend is: an object that has the ops, knows its tensors and dtypes, and explains its errors."""

import contextlib
import functools
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from emberharmony.backend.diagnosis import explain
from emberharmony.backend.host import holds_tensors, is_foreign, to_host
from emberharmony.backend.promote import Kinds
from emberharmony.core import selection
from emberharmony.core.dispatch import DIRECT, Bound
from emberharmony.core.dtypes import DType, NativeDTypes, as_dtype
from emberharmony.core.errors import (
    ArgumentError,
    BackendMismatchError,
    BackendProtocolError,
    DTypeError,
    EmberError,
    TracedTensorError,
    UnsupportedOpError,
    brief,
    suggest,
)
from emberharmony.core.registry import ALIASES, OPS, OpSpec, complete
from emberharmony.core.tracing import CLOSED_OVER, TensorProxy

TensorFunction = Callable[..., Sequence[Any]]
Pullback = Callable[[Sequence[Any]], list[Any]]
Pushforward = Callable[[Sequence[Any]], tuple[list[Any], list[Any]]]
ErrorRule = tuple[type[BaseException], str, type[EmberError]]
_HEAD = re.compile(r"(?P<op>\w+)\(\) on backend '[^']*': (?P<inner>in \w+\(\): )?")
_PREFIXES = itertools.count(2)
_TAKEN: set[str] = set()


def _tape() -> Any:
    """Returns the module that differentiates by recording ops."""
    from emberharmony.transforms import tape

    return tape


class Unsupported:
    """Stands where a backend cannot offer an op; calling it raises `UnsupportedOpError` with the reason."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.backend = self.op = "?"

    def __set_name__(self, owner: type, name: str) -> None:
        self.op, self.backend = name, owner.__name__

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """Raises `UnsupportedOpError`."""
        raise UnsupportedOpError(f"{self.op}() is unsupported by {self.backend}: {self.reason}")


def unsupported(reason: str) -> Any:
    """Declares that a backend does not offer the op it is assigned to, as in `eig = unsupported("no kernel")`."""
    return Unsupported(reason)


class Backend:
    """Is the base of all backends; a subclass adds one mixin per category and the attributes below.

    An op `name` is the attribute of that name. It takes native tensors (and, for parameters annotated `Operand`, Python
    numbers), native dtypes and the declared defaults, and returns native tensors. Composites need not be defined.
    """

    name: ClassVar[str]
    tensor_type: ClassVar[type]
    dtypes: ClassVar[NativeDTypes]
    exact_type: ClassVar[bool] = True
    """Whether `x.__class__ is tensor_type` tells a tensor; False if subclasses are tensors too (torch.nn.Parameter)."""
    wraps: ClassVar[bool] = False
    """Whether natives may return something else than `tensor_type` (NumPy scalars), which `wrap` mends."""
    eager: ClassVar[bool] = False
    """Whether all ops are compiled at the switch and not each at its first call, which `torch.compile` cannot trace."""
    errors: ClassVar[Sequence[ErrorRule]] = ()
    """(native exception, pattern searched in its message, typed error), tried in order."""
    prefix: str
    """What the globals of its compiled ops begin with."""
    bound: Bound
    """The ops compiled for it."""
    _kinds: Kinds

    def __init__(self) -> None:
        complete()
        self.prefix = self.name if self.name not in _TAKEN else f"{self.name}{next(_PREFIXES)}"
        _TAKEN.add(self.prefix)
        self.bound = Bound(self)
        self._kinds = Kinds(self.dtypes)

    @classmethod
    def missing_ops(cls) -> list[str]:
        """Returns the names of the primitives that the class neither defines nor declares unsupported."""
        complete()
        return sorted(name for name, spec in OPS.items() if not spec.composite and getattr(cls, name, None) is None)

    @property
    def version(self) -> str:
        """The version of the library behind the backend."""
        raise NotImplementedError

    def is_tensor(self, value: object) -> bool:
        """Returns whether `value` is one of this backend's tensors."""
        return isinstance(value, (self.tensor_type, TensorProxy))

    def is_traced(self, value: Any) -> bool:
        """Returns whether a tensor is being differentiated: a transform under way has a derivative by it, or before it.

        A library that differentiates its own tensors says which they are, as far as it tells.
        """
        return isinstance(value, TensorProxy)

    def kind_of(self, tensor: Any) -> str:
        """Returns the kind of a native tensor's dtype, "float" or "complex" among them; traced by torch.compile."""
        return self._kinds[tensor.dtype]

    def dtype_of(self, tensor: Any) -> DType:
        """Returns the neutral dtype of a native tensor."""
        return self.dtypes.neutral[tensor.dtype]

    def from_numpy(self, array: np.ndarray[Any, Any]) -> Any:
        """Returns a NumPy array as a native tensor of the same dtype on the default device.

        Raises: DTypeError where the backend or the device has no such dtype; nothing is narrowed.
        """
        raise NotImplementedError

    def device_scope(self, device: Any) -> contextlib.AbstractContextManager[None]:
        """Returns what `with ops.device(...)` enters.

        Raises: DeviceError for a device that there is not; UnsupportedOpError if the backend has no choice of devices.
        """
        raise UnsupportedOpError(f"device() is unsupported by {type(self).__name__}, which has one device")

    def wrap(self, result: Any) -> Any:
        """Returns an op's result with every native scalar made a tensor."""
        return result

    def convert(self, value: Any, dtype: Any = None) -> Any:
        """Returns what is `TensorLike` as a native tensor; its own tensors are returned as they are.

        Args:
            value: what to convert.
            dtype: what Python numbers, and lists of them, are read in, without one the default of their kind.

        Raises: BackendMismatchError for a tensor of another backend; DTypeError and ShapeError for what makes no array.
        """
        if isinstance(value, self.tensor_type):
            return value
        if is_foreign(value):
            kind = type(value)
            raise BackendMismatchError(
                f"an argument is a {kind.__module__}.{kind.__qualname__}, a tensor of another backend; convert it with "
                f"ops.convert_to_tensor(ops.to_numpy(x)), or run the call under `with ops.use_backend(like=x):`"
            )
        if isinstance(value, (list, tuple)) and holds_tensors(value, (self.tensor_type, TensorProxy)):
            return self.wrap(self.stack([self.convert(v) for v in value]))
        return self._import(to_host(value, None if dtype is None else as_dtype(dtype)))

    def shared(self, value: Any) -> Any:
        """Returns what is `TensorLike` as a native tensor in the same memory.

        Raises: ArgumentError where that takes a copy, and what `convert` raises.
        """
        tensor = self.convert(value)
        if isinstance(value, (self.tensor_type, TensorProxy)) and tensor is value:
            return tensor
        with contextlib.suppress(ValueError):  # NumPy's, for what it would have to copy
            host = np.asarray(value, copy=False)
            if not host.size or np.may_share_memory(self.bound.to_numpy(tensor), host):
                return tensor
        raise ArgumentError(
            f"{brief(value)} becomes a tensor of backend {self.name!r} by a copy, which copy=False refuses; leave out "
            f"copy, which then copies where it must"
        )

    @staticmethod
    def option(value: Any) -> Any:
        """Returns an argument that is no tensor as the libraries take it: NumPy's booleans as Python's."""
        return bool(value) if value.__class__ is np.bool_ else value

    def as_tensors(self, values: Any) -> list[Any]:
        """Returns a sequence of `TensorLike` as a list of native tensors."""
        kind = self.tensor_type
        return [value if value.__class__ is kind else self.convert(value) for value in values]

    def _import(self, array: np.ndarray[Any, Any]) -> Any:
        try:
            return self.from_numpy(array)
        except KeyError as error:
            raise DTypeError(f"there is no dtype {array.dtype}: cast the array first") from error

    def implementation(self, spec: OpSpec) -> Callable[..., Any]:
        """Returns what runs an op while this backend is active: its own definition, or the composite's body."""
        own = getattr(type(self), spec.name, None)
        if own is not None:
            return getattr(self, spec.name)
        if spec.composite:
            return spec.body
        raise BackendProtocolError(f"backend {self.name!r} lacks the primitive op {spec.name!r}")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Returns a composite (run with this backend active) or an alias; called for what the class lacks."""
        if name in ALIASES:
            return getattr(self, ALIASES[name])
        spec = OPS.get(name)
        if spec is None or not spec.composite:
            raise AttributeError(f"backend {self.name!r} has no op {name!r}{suggest(name, OPS)}")
        return self.composed(name)

    def composed(self, name: str) -> Callable[..., Any]:
        """Returns a composite's own body, run with this backend active: what an override falls back on."""
        spec = OPS[name]

        @functools.wraps(spec.declared)
        def composite(*args: Any, **kwargs: Any) -> Any:
            if DIRECT.bound is self.bound or selection.current() is self:
                return spec.declared(*args, **kwargs)
            with selection.Override(self):
                return spec.declared(*args, **kwargs)

        return composite

    def pullback(self, fn: TensorFunction, primals: Sequence[Any]) -> tuple[list[Any], Pullback]:
        """Returns the tensors that `fn(*primals)` lists, and the function from their cotangents to gradients.

        The second takes one cotangent an output, of its shape and dtype, or None for zero, and gives one gradient a
        primal; it may be called again, and calls `fn` again where the library keeps no graph (MLX). Both nest.
        """
        found: tuple[list[Any], Pullback] = _tape().pullback(self, fn, primals)
        return found

    def gradients(self, fn: TensorFunction, primals: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Returns the tensors that `fn(*primals)` lists, and the gradients of the first, a scalar; calls `fn` once."""
        outputs, pull = self.pullback(fn, primals)
        return outputs, pull([self.bound.ones_like(outputs[0]), *[None] * (len(outputs) - 1)])

    def pushforward(
        self, fn: TensorFunction, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Returns the tensors that `fn(*primals)` lists, and their tangents; those of integers mean nothing."""
        return self.linearized(fn, primals)(tangents)

    def linearized(self, fn: TensorFunction, primals: Sequence[Any]) -> Pushforward:
        """Returns the function of tangents that `pushforward` is; each call of it may call `fn` again."""
        return self.transposed(fn, primals)

    def transposed(self, fn: TensorFunction, primals: Sequence[Any]) -> Pushforward:
        """Returns what `linearized` does: the pullback of the pullback, which is linear in its cotangents.

        Source: Townsend, "A new trick for calculating Jacobian vector products" (2017).
        """
        outputs, pull = self.pullback(fn, primals)
        zeros = [self.bound.zeros_like(output) for output in outputs]
        places = [i for i, output in enumerate(outputs) if self.kind_of(output) in ("float", "complex")]

        def spread(*cotangents: Any) -> list[Any]:
            given: list[Any] = [None] * len(outputs)
            for i, cotangent in zip(places, cotangents, strict=True):
                given[i] = cotangent
            return pull(given)

        _, transpose = self.pullback(spread, [zeros[i] for i in places])

        def push(tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            pushed = list(zeros)
            for i, tangent in zip(places, transpose(list(tangents)), strict=True):
                pushed[i] = tangent
            return outputs, pushed

        return push

    def batched(self, fn: TensorFunction, tensors: Sequence[Any], axes: Sequence[int], same: bool = False) -> list[Any]:
        """Returns the tensors that `fn` lists for each slice of `tensors` along `axes`, stacked along axis 0.

        Random numbers are drawn for each slice, or, if `fn` sees to that where it is called several times, the `same`.
        """
        return self.looped(fn, tensors, axes)

    def looped(self, fn: TensorFunction, tensors: Sequence[Any], axes: Sequence[int]) -> list[Any]:
        """Returns what `batched` does, and calls `fn` once a slice: for libraries, and ops, that do not vectorize."""
        take, stack = self.bound.take, self.bound.stack
        rows = [
            fn(*(take(tensor, i, axis=axis) for tensor, axis in zip(tensors, axes, strict=True)))
            for i in range(tensors[0].shape[axes[0]])
        ]
        return [stack(list(column)) for column in zip(*rows, strict=True)]

    def cannot_transform(self, error: BaseException | None) -> bool:
        """Returns whether an error, or what it comes from, says that the library cannot vectorize or compile something.

        Such as an op without a rule, or reading a value that is not there yet.
        """
        return False

    def compiled(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Returns `fn` as the library compiles it; this one has no compiler."""
        return fn

    def stop_gradient(self, x: Any) -> Any:
        """Returns `x`; whatever differentiates on this backend takes it for a constant."""
        return x

    def custom_vjp(self, forward: TensorFunction, backward: Callable[..., Any], primals: Sequence[Any]) -> list[Any]:
        """Returns the tensors that `forward` lists; traced primals hand the call to their tape, which has its rule."""
        for primal in primals:
            if isinstance(primal, TensorProxy):
                traced: list[Any] = primal.run(self, "custom_vjp", (forward, backward, list(primals)))
                return traced
        outputs = list(forward(*primals))
        if any(isinstance(output, TensorProxy) for output in outputs):
            raise TracedTensorError(CLOSED_OVER)
        return outputs

    def _named(self, op: str, message: str) -> str:
        """Returns a message that begins with the op that was called, and tells in which other one it went wrong."""
        head = _HEAD.match(message)
        if head is None:
            return message if "() is " in message else f"{op}() on backend {self.name!r}: {message}"
        if head["op"] == op or OPS[op].takes_callable:
            return message
        inner = head["inner"] or f"in {head['op']}(): "
        return f"{op}() on backend {self.name!r}: {inner}{message[head.end() :]}"

    def translate(self, op: str, error: Exception, arguments: tuple[Any, ...]) -> Exception:
        """Returns the typed error for a native one that an op raised.

        A typed error raised below gets the op's and the backend's name in front.
        """
        if isinstance(error, EmberError):
            error.args = (self._named(op, str(error)),)
            return error
        typed = next(
            (
                typed
                for kind, pattern, typed in self.errors
                if isinstance(error, kind) and re.search(pattern, str(error), re.IGNORECASE)
            ),
            None,
        )
        return explain(self, op, error, arguments, typed)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} {self.version}>"
