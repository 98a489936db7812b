"""The `Kit` of a backend: its array class, and the helpers by which arrays, functions and views use its ops."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import ref

import numpy as np

from emberharmony.backend.base import Backend
from emberharmony.backend.discovery import load
from emberharmony.backend.shared.arrays.indexing import is_basic_key
from emberharmony.core import op_globals, selection
from emberharmony.core.dtypes import DType, complex64, complex128, default_complex, default_float
from emberharmony.core.errors import BackendMismatchError, IndexOutOfBoundsError, ShapeError
from emberharmony.core.registry import ALIASES, OPS, OpSpec
from emberharmony.core.state.locations import TRACKERS
from emberharmony.core.tracing import TensorProxy
from emberharmony.core.trees.nodes import register_node
from emberharmony.xp import source
from emberharmony.xp.array import ArrayBase
from emberharmony.xp.dtypes import Dtype
from emberharmony.xp.links import LOCK, Links, Stale, call_op, is_element, new_links, tensor_of
from emberharmony.xp.operators import operators
from emberharmony.xp.views import Memory

_NUMBERS = frozenset((bool, int, float, complex))
_OPTIONS = frozenset((bool, int, float, complex, str, type(None), type(...)))
_BOUNDS = frozenset((int, type(None)))
_BASIC = (int, slice, type(None), type(...))
_UNOBSERVED = "xp_unobserved"
"""The flag that no thread observes ops, so that the generated functions may call native functions."""
op_globals.publish(**{_UNOBSERVED: True})
_INTEGERS = ("bool", "unsigned", "signed")
_FLOATS = ("float", "complex")


def _do_nothing() -> None:
    """Does nothing: the `join` of backends whose threads see the results of each other without synchronization."""


def _locked_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that holds the lock while it calls another one, so that one thread at a time runs it."""

    def call_under_lock(*args: Any, **kwargs: Any) -> Any:
        with LOCK:
            return function(*args, **kwargs)

    return call_under_lock


def _positions_made_float(spec: OpSpec) -> tuple[int, ...]:
    """Returns the positions of the parameters whose integer tensors an op may convert to floats.

    Indices are none. An op with a parameter for the dtype has no such places, nor has one that would draw numbers anew.
    """
    parameters = spec.parameters
    has_dtype_or_seed = any(p.role == "DTypeLike" or p.name == "seed" for p in parameters)
    if has_dtype_or_seed or spec.returns != "Tensor" or spec.facts.view or spec.facts.gradient:
        return ()
    operand_positions = tuple(i for i, p in enumerate(parameters) if p.role == "Operand")
    return operand_positions or tuple(i for i, p in enumerate(parameters) if p.is_tensor)


class Ops:
    """The ops of a backend by their names and aliases, for native tensors."""

    def __init__(self, kit: "Kit") -> None:
        self._kit = kit

    def __getattr__(self, name: str) -> Callable[..., Any]:
        spec = OPS[ALIASES.get(name, name)]
        function = self._kit.op_function(spec)
        if not self._kit.backend.defines(spec):  # a composite calls ops, so the backend must be active
            function = source.with_backend_active(self._kit, function)
        setattr(self, name, function)
        return function

    def forget(self) -> None:
        """Deletes the cached functions, which are made again when they are next asked for."""
        for name in [name for name in vars(self) if name != "_kit"]:
            vars(self).pop(name, None)


class _Observed:
    """Whether ops are observed in any thread; a tracker of `core.state.locations`."""

    def __init__(self) -> None:
        self.is_observing = False

    def start(self) -> None:
        """Makes the functions of all namespaces report their calls to the watchers."""
        self._set_observing(True)

    def stop(self) -> None:
        """Makes the functions of all namespaces call native functions directly again, without the watchers."""
        self._set_observing(False)

    def _set_observing(self, is_observing: bool) -> None:
        with LOCK:
            self.is_observing = is_observing
            op_globals.set_flag(_UNOBSERVED, not is_observing)
            for kit in KITS:
                kit.republish()


OBSERVED = _Observed()
TRACKERS.append(OBSERVED)
KITS: "list[Kit]" = []
"""The kits of all backends that have a namespace."""


class Kit:
    """The array class of one backend, with the ops, dtypes and memory that its arrays use.

    Args:
        name: the name of the backend.
        module: the name of the module that the namespace is.
    """

    namespace: Any

    def __init__(self, name: str, module: str) -> None:
        self.name, self.module = name, module
        self.backend: Any = load(name)
        self.bound, self.native = self.backend.bound, self.backend.tensor_type
        self.float = DType(self.backend.usual_float) if self.backend.usual_float else None
        op_globals.publish(**{self.global_name_of("unset"): self.float is None})
        self.can_write = type(self.backend).may_write is not Backend.may_write  # whether tensors can be written into
        self.is_view: Callable[[Any], bool] = eval(f"lambda x: {self.backend.view_test.format('x')}")
        self.dtypes: dict[Any, Dtype] = _Dtypes(self.backend)
        self.join: Callable[[], None] = self.backend.join_thread or _do_nothing
        self.ops: Any = Ops(self)
        self.memory = Memory(self)
        self._plain_functions: dict[str, Callable[..., Any]] = {}
        self._published: list[OpSpec] = []
        class_attributes = {"__slots__": (), "__hash__": None, "__module__": module, "_kit": self}
        self.array: Any = type("Array", (ArrayBase,), class_attributes)
        self._publish_names()
        for method, function in operators(self).items():
            function.__qualname__, function.__module__ = f"Array.{method}", module
            setattr(self.array, method, function)
        KITS.append(self)
        self.array.__doc__ = f"An array of the backend {name!r}; functions of the namespace make them."
        register_node(self.array, self._flatten_array, lambda _, children: self.array_of_leaf(children[0]))

    def _publish_names(self) -> None:
        """Publishes the objects that generated functions read as globals, under names such as `numpy_xp_Array`."""
        array_class = self.ops.zeros(1).__class__  # `native` may be an abstract class
        op_globals.publish_type(self.global_name_of("type"), array_class, _UNOBSERVED)
        value_by_name = {
            "Array": self.array,
            "Links": Links,
            "MAIN": threading.main_thread().ident,
            "NUMBERS": _NUMBERS,
            "OPTIONS": _OPTIONS,
            "Override": selection.Override,
            "Stale": Stale,
            "acquire": LOCK.acquire,
            "active": selection.is_active,
            "copy": self.ops.copy,
            "dtype": Dtype,
            "exact": array_class,
            "forget": self.memory.forget_dead_views,
            "is_basic_key": is_basic_key,
            "keep": self.memory.mark_kept,
            "join": self.backend.join_thread,
            "kinds": self.backend.kinds,
            "lift": self.lift,
            "lift_shared": self.lift_shared,
            "link": self.memory.link,
            "linked": self.memory.link_result,
            "low": self.lower,
            "may_write": self.backend.may_write,
            "odd": self.apply_to_foreign_operand,
            "outdate": self.memory.mark_outdated,
            "overwrite": self.memory.overwrite,
            "picked": self.elements_at,
            "ref": ref,
            "release": LOCK.release,
            "thread": threading.get_ident,
            "write": ArrayBase.__setitem__,
            "write_into": self.backend.write_into,
        }
        op_globals.publish(**{self.global_name_of(name): value for name, value in value_by_name.items()})

    def global_name_of(self, name: str) -> str:
        """Returns the name under which an object is global for the generated functions of this backend."""
        return f"{self.backend.prefix}_xp_{name}"

    def set_default_float(self, dtype: DType | None) -> None:
        """Sets the default float of the namespace; None makes it that of `ops`."""
        with LOCK:
            self.float = dtype
            op_globals.set_flag(self.global_name_of("unset"), dtype is None)
            self.republish()

    def name_of_plain_type(self, name: str) -> str:
        """Publishes a tensor type, which is None while ops are observed, and returns its name in generated texts."""
        tensor_type, flags = op_globals.published_type(name)
        op_globals.publish_type(
            self.global_name_of(name), tensor_type, *flags, _UNOBSERVED, self.global_name_of("unset")
        )
        return f"@{name}"

    def publish(self, op: str) -> OpSpec:
        """Publishes an op for the generated functions, and returns what its declaration says."""
        spec = OPS[op]
        if spec not in self._published:
            self._published.append(spec)
            op_globals.publish(**{self.global_name_of(f"_{op}"): self.op_function(spec)})
        return spec

    def op_function(self, spec: OpSpec) -> Callable[..., Any]:
        """Returns the compiled function of an op; while ops are observed, one that reports its calls to the watchers.

        Where threads share a stream, only one at a time may compute, which any op may do that is not elementwise.
        """
        function: Callable[..., Any] = getattr(self.bound, spec.name)
        if OBSERVED.is_observing:
            function = partial(self._call_observed, spec.name)
        if self.float is not None and (positions_made_float := _positions_made_float(spec)):
            function = partial(self._call_with_floats, function, positions_made_float)
        return _locked_function(function) if self.backend.join_thread and not spec.facts.elementwise else function

    def _call_observed(self, op: str, /, *args: Any, **kwargs: Any) -> Any:
        """Calls an op so that the watchers of this thread or task see the call."""
        return getattr(selection.watched_ops(self.bound), op)(*args, **kwargs)

    def _call_with_floats(
        self, function: Callable[..., Any], positions: tuple[int, ...], /, *args: Any, **kwargs: Any
    ) -> Any:
        """Calls an op, and calls it again on floats of the namespace if its result has the default float of `ops`."""
        first_result = function(*args, **kwargs)
        dtype = self.backend.dtypes.neutral[first_result.dtype]
        if dtype not in (default_float(), default_complex()) or self.default_dtype_of(dtype.kind) == dtype:
            return first_result
        tensors = [args[i] for i in positions if i < len(args)]
        if any(self._has_tensor_of_kind(x, _FLOATS) for x in tensors) or not any(
            self._has_tensor_of_kind(x, _INTEGERS) for x in tensors
        ):
            return first_result
        return function(*(self._as_float(x) if i in positions else x for i, x in enumerate(args)), **kwargs)

    def _has_tensor_of_kind(self, argument: Any, kinds: tuple[str, ...]) -> bool:
        """Returns whether an argument is, or has in it, a tensor of one of these kinds of dtypes."""
        if argument.__class__ in (list, tuple):
            return any(self._has_tensor_of_kind(x, kinds) for x in argument)
        return self.is_tensor(argument) and self.backend.kinds[argument.dtype] in kinds

    def _as_float(self, argument: Any) -> Any:
        """Returns an argument in which integer tensors are cast to the default float of the namespace."""
        if argument.__class__ in (list, tuple):
            return argument.__class__(self._as_float(x) for x in argument)
        return self.ops.cast(argument, self.float) if self._has_tensor_of_kind(argument, _INTEGERS) else argument

    def republish(self) -> None:
        """Publishes the functions of the ops again, after observation began or ended or the default float changed."""
        self.ops.forget()
        op_globals.publish(
            **{self.global_name_of(f"_{spec.name}"): self.op_function(spec) for spec in list(self._published)}
        )

    def is_native(self, tensor: Any) -> bool:
        """Returns whether a value is a tensor of the library."""
        return isinstance(tensor, self.native)

    def is_tensor(self, tensor: Any) -> bool:
        """Returns whether a value is a tensor of the library, or stands for one in a transform."""
        return isinstance(tensor, (self.native, TensorProxy))

    def is_stand_in(self, tensor: Any) -> bool:
        """Returns whether a value is no native tensor, but a stand-in for one, such as a traced tensor."""
        return not isinstance(tensor, self.native)

    def default_dtype_of(self, kind: str) -> DType | None:
        """Returns the namespace's own default dtype for a kind, "float" or "complex"; None if it has none."""
        if self.float is None or kind not in ("float", "complex"):
            return None
        has_complex128 = self.float.name == "float64" and "complex128" in self.backend.dtypes.available
        return self.float if kind == "float" else complex128 if has_complex128 else complex64

    @staticmethod
    def size(tensor: Any) -> int:
        """Returns the number of elements of a tensor."""
        element_count = 1
        for length in tensor.shape:
            element_count *= length
        return element_count

    def plain_function(self, op: str) -> Callable[..., Any]:
        """Returns the function of an op for arrays, with the parameters as the op declares them."""
        if op not in self._plain_functions:
            self._plain_functions[op] = source.array_function(self, OPS[op], strict=False)
        return self._plain_functions[op]

    def call_on_trees(self, spec: OpSpec, arguments: tuple[Any, ...]) -> Any:
        """Calls an op that takes trees, in which arrays are nodes."""
        lowered_arguments = [
            self.lower(x) if p.is_tensor else x for p, x in zip(spec.parameters, arguments, strict=False)
        ]
        lowered_arguments += arguments[len(lowered_arguments) :]
        with selection.Override(self.backend):
            return call_op(selection.current().implementation(spec), spec.name, lowered_arguments)

    def tensor_for(self, array: Any, bound: Any) -> Any:
        """Returns the tensor of an array for the ops of a backend.

        Raises:
            BackendMismatchError: if it is another backend.
        """
        if bound.backend.home is not self.backend.home:
            raise BackendMismatchError(
                f"an array of {self.name!r} is among the arguments of an op of {bound.backend.name!r}: convert it "
                f"with from_dlpack or asarray, or run the call under `with ops.use_backend({self.name!r}):`"
            )
        return tensor_of(array)

    def lower(self, given: Any) -> Any:
        """Returns an argument for the ops: with tensors in the places of arrays, at any depth of containers.

        Raises:
            BackendMismatchError: if it holds an array of another backend.
        """
        cls = given.__class__
        if cls is self.array:
            return tensor_of(given)
        if cls in _OPTIONS:
            return given
        if cls is tuple or cls is list:
            return cls([self.lower(x) for x in given])
        if isinstance(given, tuple) and hasattr(given, "_fields"):
            return cls(*[self.lower(x) for x in given])
        if cls is Dtype:
            return given.neutral
        if cls is slice:
            return slice(
                *(
                    x if x.__class__ in _BOUNDS else self._bound_of_slice(x)
                    for x in (given.start, given.stop, given.step)
                )
            )
        if isinstance(given, np.generic):
            return given.item() if given.dtype.kind in "biufc" else given
        if isinstance(given, ArrayBase):
            raise BackendMismatchError(
                f"an array of {given._kit.name!r} is among the arguments of a function of {self.name!r}: "
                f"from_dlpack converts it"
            )
        return {name: self.lower(x) for name, x in given.items()} if cls is dict else given

    def _bound_of_slice(self, number: Any) -> Any:
        return number if isinstance(number, int) or not hasattr(number, "__index__") else number.__index__()

    def lift(self, result: Any) -> Any:
        """Returns the result of an op with arrays in the places of tensors."""
        return self._lift_result(result, foreign=False)

    def lift_shared(self, result: Any) -> Any:
        """Returns the same, of tensors whose memory may be used elsewhere: the first write into an array copies it."""
        return self._lift_result(result, foreign=True)

    def _flatten_array(self, array: Any) -> tuple[tuple[Any], None]:
        """Returns the native tensor of an array as the only leaf of a tree, and marks it as kept by a transform."""
        if self.memory.shares:
            self.memory.mark_kept(array)
        return (tensor_of(array),), None

    def array_of_leaf(self, leaf: Any) -> Any:
        """Returns an array of a leaf of a tree: a tensor, or what a transform put in its place."""
        array = self.array()
        array._v, array._links = leaf, new_links(foreign=True)
        return array

    def _lift_result(self, result: Any, foreign: bool) -> Any:
        if isinstance(result, (self.native, TensorProxy)):
            array = self.array()
            foreign = foreign or (result.__class__ is self.native and self.is_view(result))
            array._v, array._links = result, new_links(foreign=True) if foreign else None
            return array
        cls = type(result)
        if isinstance(result, tuple):
            lifted_items = [self._lift_result(x, foreign) for x in result]
            return cls(*lifted_items) if hasattr(result, "_fields") else tuple(lifted_items)
        if cls is list:
            return [self._lift_result(x, foreign) for x in result]
        return {name: self._lift_result(x, foreign) for name, x in result.items()} if cls is dict else result

    def apply_to_foreign_operand(self, op: Callable[..., Any], array: Any, other: Any, reflected: bool) -> Any:
        """Returns the result of an operator whose other operand is neither an array nor a plain number of Python."""
        if isinstance(other, np.generic) or (isinstance(other, np.ndarray) and not other.ndim):
            other = other.item()
        if not isinstance(other, (int, float, complex, self.native, TensorProxy)):
            return NotImplemented
        return self.lift(op(other, array._v) if reflected else op(array._v, other))

    def elements_at(self, array: Any, key: Any) -> Any:
        """Returns the elements of an array at a key of any form: a view if the key has only integers and slices.

        Raises:
            IndexOutOfBoundsError: if the shape of a mask does not fit, which NumPy and PyTorch call an IndexError too.
        """
        key = self.lower(key)
        if self.is_tensor(key) and self._is_empty_mask(key, array.shape):
            return self.lift(self.ops.zeros((0, *array.shape[len(key.shape) :]), dtype=tensor_of(array).dtype))
        source_tensor = tensor_of(array)
        try:
            elements = self.lift(self.ops.get_item(source_tensor, key))
        except ShapeError as error:
            raise IndexOutOfBoundsError(str(error)) from error
        key_parts = key if key.__class__ is tuple else (key,)
        if all(key_part.__class__ in _BASIC for key_part in key_parts) and (
            self.backend.scalars_share_memory or not is_element(elements, key)
        ):
            self.memory.link(elements, array, key, source_tensor)
        return elements

    def _is_empty_mask(self, key: Any, shape: tuple[int, ...]) -> bool:
        """Returns whether a key is a boolean mask without elements, whose other axes fit the shape of the array."""
        mask_shape = tuple(key.shape)
        if 0 not in mask_shape or len(mask_shape) > len(shape) or self.backend.kinds[key.dtype] != "bool":
            return False
        return all(k in (n, 0) for k, n in zip(mask_shape, shape, strict=False))


class _Dtypes(dict[Any, Dtype]):
    """A dict from native dtypes of a backend to `Dtype` objects, which are added when they are first asked for."""

    def __init__(self, backend: Any) -> None:
        super().__init__()
        self._neutral = backend.dtypes.neutral

    def __missing__(self, native_dtype: Any) -> Dtype:
        self[native_dtype] = dtype = Dtype(self._neutral[native_dtype])
        return dtype
