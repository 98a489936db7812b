"""The base class of backends: an object that has the ops, knows its tensors and dtypes, and explains its errors."""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from emberharmony.backend.categories import Categories
from emberharmony.backend.host import HOLD_NUMBERS, holds_tensors, is_foreign, numbers_to_host, to_host
from emberharmony.backend.probes import Probes
from emberharmony.backend.promote import Kinds
from emberharmony.backend.shared.device import HostMemory, processor_name
from emberharmony.backend.shared.precision import ProductPrecision
from emberharmony.backend.steps import Steps
from emberharmony.backend.transforms import TensorFunction, Transforms
from emberharmony.core import selection
from emberharmony.core.cells.cell import Cell
from emberharmony.core.cells.forms import Form
from emberharmony.core.cells.moves import HostBits
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import Bound
from emberharmony.core.dtypes import DType, NativeDTypes, bfloat16
from emberharmony.core.errors import (
    ArgumentError,
    BackendMismatchError,
    BackendProtocolError,
    DTypeError,
    EmberError,
    ShapeError,
    TracedTensorError,
    UnsupportedOpError,
    brief,
)
from emberharmony.core.registry import ALIASES, OPS, OpSpec, complete
from emberharmony.core.state.locations import add_location
from emberharmony.core.tracing import CLOSED_OVER, Standing, Substitute, TensorProxy

if TYPE_CHECKING:
    import numpy as np

    from emberharmony.backend import diagnosis
    from emberharmony.backend.array_namespace import ArrayNamespace
    from emberharmony.core.names import unknown_names
else:
    np = Deferred("numpy")
    diagnosis = Deferred("emberharmony.backend.diagnosis")
    unknown_names = Deferred("emberharmony.core.names.unknown_names")
array_namespace: Any = Deferred("emberharmony.backend.array_namespace")

ErrorRule = tuple[type[BaseException], str, type[EmberError]]
# The head of a message of this library: an error raised inside a composite has one already.
_HEAD = r"(?P<op>\w+)\(\) on backend '[^']*': (?P<inner>in \w+\(\): )?"
_PREFIXES = itertools.count(2)
_TAKEN: set[str] = set()


class Unsupported:
    """A placeholder for an op that a backend cannot offer; a call raises `UnsupportedOpError` with the reason."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.backend = self.op = "?"

    def __set_name__(self, owner: type, name: str) -> None:
        self.op, self.backend = name, owner.__name__

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """Raises `UnsupportedOpError` with the reason."""
        raise UnsupportedOpError(f"{self.op}() is unsupported by {self.backend}: {self.reason}")


def unsupported(reason: str) -> Any:
    """Returns a placeholder that declares an op as not offered by a backend: `eig = unsupported("no kernel")`.

    Args:
        reason: why the backend does not have the op, in a few words; the `UnsupportedOpError` of a call says it.
    """
    return Unsupported(reason)


class Backend(Categories, Steps, Transforms, Probes, ProductPrecision, HostMemory):
    """A backend: the ops of one tensor library. A subclass adds one mixin per category, or names it in
    `categories` so that it is imported at the first use, and the attributes below.

    Each op is a method named after it. The method takes native tensors (and Python numbers, where the parameter is
    annotated `Operand`), native dtypes and the declared defaults, and returns native tensors. A subclass must define
    every primitive (an op declared without a body); it may override composites (ops written in terms of other ops).
    """

    name: ClassVar[str]
    tensor_type: ClassVar[type]
    dtypes: ClassVar[NativeDTypes]
    exact_type: ClassVar[bool] = True
    """Whether every tensor has `tensor_type` as its class; False if subclasses are tensors too (torch.nn.Parameter)."""
    wraps: ClassVar[bool] = False
    """Whether native functions may return something other than `tensor_type` (NumPy scalars); `wrap` converts it."""
    boolean_keys: ClassVar[bool] = True
    """Whether native tensors take boolean keys, as in `x[x > 0]`; `ops.get_item` takes them on every backend."""
    tracer: ClassVar[str] = ""
    """The name of the module by which the library traces the source of functions, if it cannot trace a first use, as
    `torch.compile` cannot. All ops are compiled, and the namespace is filled, before it traces."""
    observable: ClassVar[bool] = True
    """Whether watchers see the calls of its ops; not those that compute nothing, inside of `eval_shape`."""
    is_twin: ClassVar[bool] = False
    """Whether it stands for another one, and tells watchers of the calls; see `transforms/twin.py`."""
    errors: ClassVar[Sequence[ErrorRule]] = ()
    """Triples (native exception, pattern to search in its message, typed error); the first that fits is used."""
    defines_all: ClassVar[bool] = False
    """Whether it defines all ops that may be asked of it while another backend is active; bodies need no check then."""
    shares_memory: ClassVar[bool] = False
    """Whether tensors have memory that can be written to, and that slices of them share."""
    scalars_share_memory: ClassVar[bool] = False
    """Whether a tensor without axes that was read from another one shares its memory too."""
    usual_float: ClassVar[str] = ""
    """The default float of its array API namespace, where programs expect another one than that of `ops`."""
    view_test: ClassVar[str] = "False"
    """The expression of whether a native tensor `{0}` may lie in the memory of another one, for generated code."""
    recorded_test: ClassVar[str] = ""
    """The expression of whether the library records how a native tensor `{0}` was computed, so that it may keep the
    memory of others; for generated code. Empty if it never does."""
    native_index: ClassVar[str] = ""
    """The condition under which the library itself reads `a[key]` for an integer or slice of class `c` as `get_item`
    does, or raises; for generated code. It may raise itself, and functions may return scalars if `wraps`."""
    join_thread: ClassVar[Any] = None
    """A function by which a thread may read what other threads compute later; None where nothing has to be done."""
    of_numbers: ClassVar[Any] = None
    """A function that makes a tensor of Python numbers and a neutral dtype, or returns None to leave it to the host."""
    prefix: str
    """The prefix of the global names that the compiled ops of this backend use; unique per backend object."""
    bound: Bound
    """The ops compiled for this backend."""
    home: Bound
    """The ops of the backend whose tensors cells hold: those of this one, or of the one that it wraps."""
    kinds: Kinds
    """The kinds of the native dtypes, such as "float" or "complex"."""

    def __init__(self) -> None:
        complete()
        self.take_prefix()
        self._complete_definitions(type(self).__mro__)
        self.home = self.bound = Bound(self)
        self.kinds = Kinds(self.dtypes)

    def take_prefix(self) -> None:
        """Gives this backend object a unique prefix, because the ops of all backends share one namespace of globals."""
        self.prefix = self.name if self.name not in _TAKEN else f"{self.name}{next(_PREFIXES)}"
        _TAKEN.add(self.prefix)

    @property
    def without_watchers(self) -> Backend:
        """The backend itself, or the backend that it wraps if it only reports the calls to watchers."""
        return self

    @classmethod
    def tape_methods(cls) -> dict[str, Any]:
        """Returns by name the methods by which a backend differentiates with the tape instead of its library."""
        method_names = (
            "pullback",
            "gradients",
            "pushforward",
            "linearize",
            "transpose_pullback",
            "map_slices",
        )
        return {
            name: getattr(Backend, name)
            for name in (*method_names, "custom_vjp", "is_traced", "may_outlive_transforms")
        }

    @classmethod
    def overwritten_defaults(cls) -> list[str]:
        """Returns the ops that `Backend` defines, such as stop_gradient, but the class declares unsupported."""
        default_names = [name for name in vars(Backend) if name in OPS]
        return [name for name in default_names if isinstance(getattr(cls, name, None), Unsupported)]

    @property
    def namespace(self) -> ArrayNamespace:
        """The ops of this backend as a namespace of the array API standard; there is one for each backend object."""
        if "_namespace" not in self.__dict__:
            self.__dict__.setdefault("_namespace", array_namespace.ArrayNamespace(self))
        namespace: ArrayNamespace = self.__dict__["_namespace"]
        return namespace

    @property
    def version(self) -> str:
        """The version of the library behind the backend."""
        raise NotImplementedError

    def is_tensor(self, value: object) -> bool:
        """Returns whether `value` is one of this backend's tensors.

        Args:
            value: any object, of any library or none.
        """
        return isinstance(value, (self.tensor_type, TensorProxy))

    def is_traced(self, x: Any) -> bool:
        """Returns whether a running transform differentiates with respect to a tensor, or to an input of it.

        Backends whose library has its own automatic differentiation override this, as far as the library can tell.

        Args:
            x: a native or traced tensor; anything else is not traced.
        """
        return isinstance(x, TensorProxy) and x.wants_derivative

    def may_outlive_transforms(self, tensor: Any) -> bool:
        """Returns whether a parameter or buffer may keep a tensor beyond the end of the transforms that are running.

        Args:
            tensor: a native or traced tensor of any shape and dtype.
        """
        return not isinstance(tensor, TensorProxy) and not self.is_traced(tensor)

    def detach(self, tensor: Any) -> Any:
        """Returns a tensor without the library's own record of how it was computed, as parameters and buffers keep it.

        A tensor that a running transform differentiates, and one of another backend, is unchanged.

        Args:
            tensor: a tensor that a cell is about to hold, of this or another backend.
        """
        return tensor

    @staticmethod
    def share_memory(a: Any, b: Any) -> bool:
        """Returns whether two tensors share memory; False on a backend whose tensors never do.

        Args:
            a: a native tensor of any shape.
            b: another one, whose memory may overlap that of `a`, in whole or in part.
        """
        return False

    def may_write(self, *tensors: Any) -> bool:
        """Returns whether `write_into` may write tensors into others; not if a transform or a graph watches one.

        Args:
            tensors: the memory and the updates that `write_into` would get, native tensors of one dtype.
        """
        return False

    def write_into(self, memory: Any, place: Any, updates: Any) -> Any:
        """Returns a tensor with updates at a place, in its own memory as far as the library can.

        An op cannot know who else holds its argument, so `set_item` copies the whole tensor; this is for those who do.

        Args:
            memory: a tensor that nobody else uses any more. No transform of the library may map over it.
            place: a key of slices and integers that are in bounds.
            updates: a tensor of the same dtype and device, for which `may_write` holds.
        """
        memory[place] = updates
        return memory

    @staticmethod
    def in_place_form(native: Callable[..., Any]) -> Callable[..., Any] | None:
        """Returns the form of a native function that writes its result into its first tensor; None if there is none.

        It raises before it writes. A library that may raise afterwards, as NumPy for `errstate`, offers none.

        Args:
            native: a function of the library.
        """
        return None

    def array_if_cheap(self, tensor: Any) -> np.ndarray[Any, Any] | None:
        """Returns a tensor as an array if reading it costs next to nothing, or in checked mode; else None.

        It serves checks that are worth no transfer and no evaluation.

        Args:
            tensor: a native or traced tensor of any shape and dtype.
        """
        return None

    def takes_layouts(self, x: Any) -> bool:
        """Returns whether a kernel multiplies `x` by quantised matrices in a layout of its own (`quantized_forms`).

        Args:
            x: the floating tensor `(..., columns)` that would be multiplied.
        """
        return False

    def quantized_forms(self, w: Any, scales: Any, biases: Any, bits: int) -> tuple[Form, Any, Any] | None:
        """Returns a quantised matrix, its scales and biases in a layout that multiplies faster; None if there is none.

        The results are a form of `w`, whose layout `quantized_matmul` and `quantized_rows` take in the place of `w`,
        and equal scales and biases, perhaps with other strides.

        Args:
            w: the words of the matrix, uint32 `(rows, columns * bits / 32)`.
            scales: one factor for each group of values in a row, floating `(rows, groups)`.
            biases: what is added to each group, of the shape and dtype of `scales`.
            bits: the bits of a value, 4 or 8.
        """
        return None

    def quantized_rows(self, layout: Any, indices: Any, rows: int, bits: int) -> Any:
        """Returns the rows at some indices, as packed words, of a quantised matrix in the layout of `quantized_forms`.

        Args:
            layout: what `quantized_forms` returned for `w`.
            indices: the rows to return, an integer tensor of any shape.
            rows: how many rows the matrix has, of which the layout may hold more.
            bits: the bits of a value, 4 or 8.
        """
        raise NotImplementedError

    def kind_of(self, tensor: Any) -> str:
        """Returns the kind of a native tensor's dtype, such as "float" or "complex"; `torch.compile` can trace it.

        Args:
            tensor: a native tensor of any shape.
        """
        return self.kinds[tensor.dtype]

    def dtype_of(self, tensor: Any) -> DType:
        """Returns the neutral dtype of a native tensor.

        Args:
            tensor: a native tensor of any shape.
        """
        return self.dtypes.neutral[tensor.dtype]

    def from_numpy(self, array: np.ndarray[Any, Any]) -> Any:
        """Returns a NumPy array as a native tensor of the same dtype on the default device.

        Args:
            array: an array of any shape, whose dtype is kept.

        Raises:
            DTypeError: if the backend or the device does not have this dtype; the array is never narrowed.
        """
        raise NotImplementedError

    def pack(self, tensor: Any) -> HostBits:
        """Returns a tensor's values as bits in an array on the host, which may share the memory of the tensor.

        Args:
            tensor: a tensor of this backend of any shape and dtype, or what `convert` takes.

        Raises:
            TracedTensorError: if the tensor is traced.
        """
        tensor = self.convert(tensor)
        neutral_dtype = self.dtype_of(tensor)
        host_ready_tensor = self.bound.view(tensor, "uint16") if neutral_dtype is bfloat16 else tensor
        array = self.bound.to_numpy(host_ready_tensor)
        # PyTorch warns about read-only arrays while torch.compile traces.
        return HostBits(array if array.flags.writeable else array.copy(), neutral_dtype.name)

    def unpack(self, packed: HostBits, device: Any = None) -> Any:
        """Returns a native tensor, with memory of its own, that is made of the bits that `pack` returned.

        Args:
            packed: what `pack` returned, here or on another backend, of any shape and dtype.
            device: the name of the device of the tensor; by default the default device.

        Raises:
            DTypeError: if the backend or the device lacks the dtype.
        """
        array, dtype_name = packed
        if array.dtype.isnative:
            # The dtype of an array that was pickled is equal to NumPy's own, but another object.
            array = array.view(array.dtype.type)
        tensor = self.bound.convert_to_tensor(array, device=device, copy=True)
        return self.bound.view(tensor, dtype_name) if dtype_name == "bfloat16" else tensor

    def compiles_source(self) -> bool:
        """Returns whether the library's compiler is reading the source that runs, as torch.compile does."""
        return False

    def compile_program(self, program: Any) -> Callable[[Sequence[Any]], list[Any]]:
        """Returns the function of NumPy arrays that runs a program of ops, compiled.

        Args:
            program: what the recorder of `ops.compile` made: the calls of a function, in order, without values.

        Raises:
            UnsupportedOpError: if the backend is no engine of `ops.compile`.
        """
        raise UnsupportedOpError(f"backend {self.name!r} is no engine of ops.compile")

    def wait_for(self, result: Any) -> bool:
        """Waits until the tensors in a result are computed, and returns whether that may have taken time.

        Args:
            result: what an op returned: a tensor, or a nested list, tuple or dict of tensors.
        """
        return False

    def free_caches(self) -> None:
        """Frees what the library keeps for later calls, such as compiled programs; here it keeps nothing."""

    def peak_memory(self, restart: bool = False) -> tuple[int, int] | None:
        """Returns the bytes in use now, and the most since the last restart of the count; None if not known.

        Args:
            restart: whether the count of the most memory begins anew, from what is in use now.
        """
        return None

    def device_scope(self, device: Any) -> contextlib.AbstractContextManager[None]:
        """Returns the context manager behind `with ops.device(...)`, which sets the default device of its block.

        Args:
            device: the name of a device as `ops.get_available_devices` gives it, such as "cpu".

        Raises:
            DeviceError: if the device does not exist.
            UnsupportedOpError: if the backend has only one device.
        """
        raise UnsupportedOpError(f"device() is unsupported by {type(self).__name__}, which has one device")

    def device_model(self, device: Any) -> str:
        """Returns what the maker of a device calls it, such as "NVIDIA H200".

        Args:
            device: a device, by its name or as the library has it.

        Raises:
            DeviceError: if the device does not exist.
        """
        return processor_name()

    def wrap(self, result: Any) -> Any:
        """Returns an op's result with every native scalar converted to a tensor.

        Args:
            result: what a native function returned: a tensor, a scalar of the library, or a tuple of these.
        """
        return result

    def convert(self, value: Any, dtype: Any = None) -> Any:
        """Returns a `TensorLike` value as a native tensor; tensors of this backend are returned unchanged.

        Args:
            value: a tensor, NumPy array, number, or nested list of these.
            dtype: the dtype for Python numbers and lists of them; by default the default dtype of their kind.

        Raises:
            ArgumentTypeError: if the value does not convert to an array.
            BackendMismatchError: if the value is a tensor of another backend.
            DTypeError: if the backend does not have the array's dtype.
            RangeError: if a Python integer does not fit the dtype.
            ShapeError: if a nested list is ragged.
        """
        neutral_dtype = None if dtype is None else self.dtypes.neutral[self.dtypes[dtype]]
        if value.__class__ in HOLD_NUMBERS:
            if self.of_numbers is not None and (number_tensor := self.of_numbers(value, neutral_dtype)) is not None:
                return number_tensor
            number_array = numbers_to_host(value, neutral_dtype)
            if number_array is not None:
                return self._import_array(number_array)
        if isinstance(value, self.tensor_type):
            return value
        if isinstance(value, (Cell, Standing)):
            return self.convert(value.tensor_on(self.bound))
        if value.__class__ is not list and is_foreign(value):
            cls = type(value)
            raise BackendMismatchError(
                f"an argument is a {cls.__module__}.{cls.__qualname__}, a tensor of another backend; run the call "
                f"under `with ops.use_backend(like=x):`, in which ops.to_numpy(x) gives an array that every backend "
                f"takes, or take the function from ops.array_namespace(x)"
            )
        if isinstance(value, (list, tuple)) and holds_tensors(value, (self.tensor_type, Substitute)):
            tensors = self.as_tensors(value)
            shapes = list(dict.fromkeys(tuple(tensor.shape) for tensor in tensors))
            if len(shapes) > 1:
                raise ShapeError(
                    f"a {type(value).__name__} with tensors of shapes {shapes[0]} and {shapes[1]} does not become one "
                    f"tensor; if a layer returned it, take a part, as in output, state = lstm(x)"
                )
            return self.wrap(self.stack(tensors))
        return self._import_array(to_host(value, neutral_dtype))

    def convert_without_copy(self, value: Any) -> Any:
        """Returns a `TensorLike` value as a native tensor that shares the memory of the value.

        Args:
            value: a tensor, an array of NumPy, or another object with memory of its own; a list or a number has none.

        Raises:
            ArgumentError: if the conversion needs a copy.
            EmberError: as `convert` does.
        """
        tensor = self.convert(value)
        if isinstance(value, (self.tensor_type, TensorProxy)) and tensor is value:
            return tensor
        with contextlib.suppress(ValueError):  # NumPy raises it if it would have to copy
            host_array = np.asarray(value, copy=False)
            if not host_array.size or np.may_share_memory(self.bound.to_numpy(tensor), host_array):
                return tensor
        raise ArgumentError(
            f"{brief(value)} cannot become a tensor of backend {self.name!r} without a copy, which copy=False refuses; "
            f"leave out copy to allow it"
        )

    @staticmethod
    def python_option(value: Any) -> Any:
        """Returns an option of an op unchanged, but a NumPy boolean as a Python one, which all libraries take.

        Args:
            value: the argument as the caller gave it.
        """
        return bool(value) if value.__class__.__name__ == "bool" else value

    def as_tensors(self, values: Any) -> list[Any]:
        """Returns a sequence of `TensorLike` values as a list of native tensors.

        Args:
            values: the tensors, arrays, lists or numbers, each of its own shape and dtype.
        """
        tensor_type = self.tensor_type
        return [value if value.__class__ is tensor_type else self._item_tensor(value) for value in values]

    def _item_tensor(self, value: Any) -> Any:
        """Returns an item of a list as a tensor.

        Raises:
            TracedTensorError: if it stands for a tensor, and so has to run the op itself.
        """
        if isinstance(value, Standing):
            raise TracedTensorError("a list holds an array, which runs the op", value)
        return self.convert(value)

    def _import_array(self, array: np.ndarray[Any, Any]) -> Any:
        try:
            return self.from_numpy(array)
        except KeyError as error:
            raise DTypeError(f"the backend has no dtype {array.dtype}; cast the array first") from error

    def implementation(self, spec: OpSpec) -> Callable[..., Any]:
        """Returns the function that runs an op on this backend: its own definition, else the body of the declaration.

        Args:
            spec: the declaration of the op, `OPS[name]`.

        Raises:
            BackendProtocolError: if the op is a primitive that the backend does not define.
        """
        if getattr(type(self), spec.name, None) is not None or self.defines(spec):
            return getattr(self, spec.name)
        if spec.composite:
            return spec.body if self.defines_all else self._with_self_active(spec.body)
        raise BackendProtocolError(f"backend {self.name!r} lacks the primitive op {spec.name!r}")

    def body_of(self, spec: OpSpec) -> Callable[..., Any]:
        """Returns the function that runs a composite on traced tensors, which is its body.

        A backend that watches the calls of ops overrides this as well as `implementation`, because the tape runs the
        body also where the backend has a definition of its own.

        Args:
            spec: the declaration of the composite, `OPS[name]`.
        """
        return spec.composed

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Returns a composite, run with this backend active, or an alias; called for names that the class lacks."""
        if name in ALIASES:
            return getattr(self, ALIASES[name])
        spec = OPS.get(name)
        if spec is not None and self.categories and self.defines(spec):
            return getattr(self, name)
        if spec is None or not spec.composite:
            raise unknown_names.missing_name_error(f"backend {self.name!r}", "op", name)
        return self.composed(name)

    def composed(self, name: str) -> Callable[..., Any]:
        """Returns the body of a composite, run with this backend active; a backend's own definition falls back on it.

        Args:
            name: the name of the composite, which must not be an alias.
        """
        return self._with_self_active(OPS[name].composed)

    def _with_self_active(self, body: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a body run with this backend active, because it calls the ops of the active one."""

        @functools.wraps(body)
        def call_body(*args: Any, **kwargs: Any) -> Any:
            if selection.is_active(self.bound):
                return body(*args, **kwargs)
            with selection.Override(self):
                return body(*args, **kwargs)

        return call_body

    def call_with_own_ops(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Calls a function with the ops of this backend, also inside of a block that overrides the backend or its ops.

        Args:
            function: the function, which calls ops.
            args: its positional arguments.
            kwargs: its keyword arguments.
        """
        with selection.Override(self):
            return function(*args, **kwargs)

    def stop_gradient(self, variable: Any) -> Any:
        """Returns `variable` as a constant, which transforms do not differentiate.

        Args:
            variable: a native or traced tensor of any shape.
        """
        return variable

    def custom_vjp(self, forward: TensorFunction, backward: Callable[..., Any], primals: Sequence[Any]) -> list[Any]:
        """Returns the list of tensors `forward(*primals)`, whose gradients `backward` computes.

        Args:
            forward: a function of native tensors that returns a sequence of them.
            backward: is called as `backward(primals, cotangents)` and returns one gradient for each primal.
            primals: the tensors to differentiate by.

        Raises:
            TracedTensorError: if `forward` uses a traced tensor that is not one of the primals.
        """
        # A traced primal belongs to a tape, which records the call together with `backward`.
        for primal in primals:
            if isinstance(primal, TensorProxy):
                traced_outputs: list[Any] = primal.run(self, "custom_vjp", (forward, backward, list(primals)))
                return traced_outputs
        outputs = list(forward(*primals))
        if any(isinstance(output, TensorProxy) for output in outputs):
            raise TracedTensorError(CLOSED_OVER)
        return outputs

    def _message_for(self, op: str, message: str) -> str:
        """Returns a message that begins with the op that was called, and names the inner op that failed, if any."""
        head_match = re.match(_HEAD, message)
        if head_match is None:
            return message if "() is " in message else f"{op}() on backend {self.name!r}: {message}"
        if head_match["op"] == op or OPS[op].takes_callable:
            return message
        inner_text = head_match["inner"] or f"in {head_match['op']}(): "
        return f"{op}() on backend {self.name!r}: {inner_text}{message[head_match.end() :]}"

    def translate(self, op: str, error: Exception, arguments: tuple[Any, ...]) -> Exception:
        """Returns the typed error for an error that an op raised.

        If the error is typed already, its message gets the names of the op and the backend in front.

        Args:
            op: the name of the op.
            error: what it raised, of this package or of the library.
            arguments: those of the call, which the message may quote.
        """
        if isinstance(error, EmberError):
            error.args = (self._message_for(op, str(error)) + diagnosis.other_library_hint(OPS[op], arguments),)
            return add_location(error)
        error_class = next(
            (
                error_class
                for native_error_class, pattern, error_class in self.errors
                if isinstance(error, native_error_class) and re.search(pattern, str(error), re.IGNORECASE)
            ),
            None,
        )
        return add_location(diagnosis.typed_error(self, op, error, arguments, error_class))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} {self.version}>"
