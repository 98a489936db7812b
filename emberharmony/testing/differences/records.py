"""Records of op calls: arguments and results as JSON and bytes, which can be written, read and called again."""

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from emberharmony.backend.host import bfloat16_of_numpy
from emberharmony.backend.shared.random import Generator
from emberharmony.core.cells.moves import HostBits
from emberharmony.core.dtypes import DType, as_dtype, native_name
from emberharmony.core.errors import EmberError
from emberharmony.core.tracing import TensorProxy

Array = np.ndarray[Any, Any]
PLAIN = frozenset((bool, int, float, str, type(None)))
"""The classes of arguments that JSON has itself, so that they are written unchanged."""


class Host:
    """A tensor on the host: its bits (those of bfloat16 as uint16) and the neutral name of its dtype.

    Attributes:
        dtype: the name.
        shape: the shape.
        size: the number of elements.
        measured: the tensor that it was compared with last, and how far the two are apart.
    """

    __slots__ = ("_bits", "dtype", "measured", "shape", "size")

    def __init__(self, bits: Array, dtype: str) -> None:
        self._bits, self.dtype = bits, dtype
        self.measured: tuple[Host, Any] | None = None
        self.shape, self.size = bits.shape, bits.size

    @property
    def bits(self) -> Array:
        """The bits of the tensor as an array of its shape."""
        return self._bits

    def vector(self) -> Array:
        """Returns the elements as a vector; half precisions as float32."""
        return _numbers_of_bits(self.bits.reshape(-1), self.dtype, True)

    def blocks(self, most: int) -> Iterable[Array]:
        """Yields the elements as vectors of at most `most` elements; half precision becomes float32."""
        return (self.vector(),) if 0 < self.size <= most else self._blocks_of_bits(most)

    def _blocks_of_bits(self, most: int) -> Iterator[Array]:
        bits = self.bits
        # `flat` reads an array that is not contiguous in parts; `reshape(-1)` would copy all of it.
        flat_bits: Any = bits.reshape(-1) if bits.flags.c_contiguous else bits.flat
        for start in range(0, self.size, most):
            yield _numbers_of_bits(flat_bits[start : start + most], self.dtype, True)

    def values(self) -> Array:
        """Returns the tensor as an array of its dtype; bfloat16 as float32, which holds the same values."""
        return _numbers_of_bits(self.bits, self.dtype)

    def wide_array(self) -> Array:
        """Returns the tensor in float64 or complex128; integers and booleans unchanged."""
        array = self.values()
        if array.dtype.kind == "f":
            return array.astype(np.float64)
        return array.astype(np.complex128) if array.dtype.kind == "c" else array

    def as_array(self) -> Array:
        """Returns the tensor as an array of NumPy of the same dtype."""
        return self.bits.view(bfloat16_of_numpy()) if self.dtype == "bfloat16" else self.bits

    def copy_in_memory(self) -> "Host":
        """Returns a copy of the tensor with memory of its own."""
        return Host(self.bits.copy(), self.dtype)


def _numbers_of_bits(bits: Array, dtype: str, at_least_single: bool = False) -> Array:
    if dtype == "bfloat16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return bits.astype(np.float32) if at_least_single and dtype == "float16" else bits


class Record:
    """The record of one call of an op: name, place in the program, arguments, results and error.

    Attributes:
        op: the name of the op.
        path: the module that was running.
        line: the user's line, as "file:line".
        gradient_of: the op whose gradient was being computed, or "".
        backend: the name of the backend.
        args: the positional arguments as JSON, in which {"t": i} stands for `tensors[i]`.
        kwargs: the keyword arguments in the same form.
        result: the result in the same form.
        error: the error that the op raised, or "".
        streams: the states of the streams that a random op draws from, or None.
        tensors: the tensors of the arguments and of the result.
        number: the number of the call in its run.
        seen: for each tensor of the arguments, the number of the call that gave or was given its values last; -1 if
            none had the tensor, and -2 - k if call k had it last, with other values.
    """

    __slots__ = (
        *("args", "backend", "error", "gradient_of", "kwargs", "line", "number", "op", "path", "result", "seen"),
        *("_inputs", "_results", "streams", "tensors"),
    )

    op: str
    path: str
    line: str
    gradient_of: str
    backend: str
    args: Any
    kwargs: Any
    result: Any
    error: str
    streams: Any
    tensors: list[Host]
    seen: list[int]
    number: int

    def __init__(
        self,
        op: str,
        path: str,
        line: str,
        gradient_of: str,
        backend: str,
        args: Any,
        kwargs: Any,
        tensors: list[Host],
        seen: list[int],
        number: int = 0,
        result: Any = None,
        error: str = "",
        streams: Any = None,
    ) -> None:
        self.op, self.path, self.line, self.gradient_of, self.backend = op, path, line, gradient_of, backend
        self.args, self.kwargs, self.tensors, self.seen, self.number = args, kwargs, tensors, seen, number
        self.result, self.error, self.streams = result, error, streams
        self._inputs: list[Host] | None = None
        self._results: list[Host] | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """The key by which the calls of two runs are aligned: the op, the module and the op of a gradient."""
        return self.op, self.path, self.gradient_of

    def inputs(self) -> list[Host]:
        """Returns the tensors of the arguments."""
        if self._inputs is None:
            self._inputs = [self.tensors[i] for i in [*tensor_numbers(self.args), *tensor_numbers(self.kwargs)]]
        return self._inputs

    def results(self) -> list[Host]:
        """Returns the tensors of the result."""
        if self._results is None:
            self._results = [self.tensors[i] for i in tensor_numbers(self.result)]
        return self._results

    def refresh(self, one: "Record") -> None:
        """Does nothing, because the arguments of a recorded call cannot change after they were compared."""

    def plain_results(self) -> list[Any]:
        """Returns the results of the call that are not tensors, such as Python numbers."""
        result = self.result
        return [] if result.__class__ is dict and "t" in result else list(_plain_values(result))

    def with_tensors(self, tensors: list[Host], **other: Any) -> "Record":
        """Returns a copy of the record with other tensors, and with new values of the named attributes."""
        attribute_values = {name: getattr(self, name) for name in Record.__slots__ if not name.startswith("_")}
        return Record(**(attribute_values | {"tensors": tensors} | other))


# Records share their constant parts, because more objects make Python's garbage collection run more often.
_REFERENCES = [{"t": i} for i in range(16)]
NO_OPTIONS: dict[str, list[Any]] = {"d": []}
"""The keyword arguments of a call without any, as JSON."""


def tensor_reference(number: int) -> dict[str, int]:
    """Returns the JSON that refers to a tensor of a record by its number."""
    return _REFERENCES[number] if number < len(_REFERENCES) else {"t": number}


def encode(value: Any, backend: Any, add: Callable[[Any], int]) -> Any:
    """Returns an argument or result as JSON, in which references by number replace the tensors.

    Args:
        value: an argument or a result of an op.
        backend: the backend whose tensors it may hold.
        add: is called with each tensor, of the backend or of NumPy, and returns its number.
    """
    value_class = value.__class__
    if value_class in PLAIN:
        return value
    if value_class is tuple or value_class is list:
        tensor_type, encoded_items = backend.tensor_type, []
        for item in value:  # encodes most items without a call of `encode`, which is faster
            item_class = item.__class__
            if item_class in PLAIN:
                encoded_items.append(item)
            elif item_class is tensor_type and tensor_type is not TensorProxy:
                encoded_items.append(tensor_reference(add(item)))
            else:
                encoded_items.append(encode(item, backend, add))
        return {"l" if value_class is list else "u": encoded_items}
    if value_class is backend.tensor_type and value_class is not TensorProxy:
        return tensor_reference(add(value))
    if isinstance(value, TensorProxy):
        return {"o": "a traced tensor"}
    if isinstance(value, backend.tensor_type):
        return tensor_reference(add(value))
    if isinstance(value, (tuple, list)):
        return encode((list if isinstance(value, list) else tuple)(value), backend, add)
    if isinstance(value, (np.ndarray, np.generic)) and (
        value.dtype.kind in "biufc" or _dtype_name(value.dtype) == "bfloat16"
    ):
        return {"h": add(value)}
    return _encode_without_tensor(value, backend, add)


def _encode_without_tensor(value: Any, backend: Any, add: Callable[[Any], int]) -> Any:
    """Returns a slice, a number, a generator, a dict or a dtype as JSON, and the class of anything else."""
    value_class = value.__class__
    if isinstance(value, slice):
        return {"s": [encode(bound, backend, add) for bound in (value.start, value.stop, value.step)]}
    if value is Ellipsis:
        return {"e": 1}
    if value_class is complex:
        return {"c": [value.real, value.imag]}
    if isinstance(value, Generator):
        return {"g": value.state_dict()}
    if isinstance(value, dict):
        return {"d": [[encode(k, backend, add), encode(v, backend, add)] for k, v in value.items()]}
    if isinstance(value, (int, float)) and not isinstance(value, bool):  # an enumeration, or a subclass of a number
        return value.__index__() if isinstance(value, int) else float(value)
    with contextlib.suppress(TypeError, KeyError, EmberError):
        dtype_name = native_name(value) if isinstance(value, DType) else backend.dtypes.neutral[value].name
        return {"k": dtype_name}
    return str(value) if isinstance(value, str) else {"o": f"{value_class.__module__}.{value_class.__qualname__}"}


@functools.cache
def _dtype_name(dtype: Any) -> str:
    """Returns the name of a NumPy dtype, cached because NumPy builds the text anew each time."""
    return str(dtype.name)


def to_host(tensor: Any, backend: Any) -> Host:
    """Returns a tensor of a backend or of NumPy on the host, perhaps in the memory of the tensor."""
    return Host(*bits_of(tensor, backend))


def bits_of(tensor: Any, backend: Any) -> tuple[Array, str]:
    """Returns the bits of a tensor on the host, perhaps in the memory of the tensor, and the name of its dtype."""
    if isinstance(tensor, (np.ndarray, np.generic)):
        host_array = tensor if tensor.__class__ is np.ndarray else np.asarray(tensor)
        return (host_array.view(np.uint16) if host_array.dtype.kind == "V" else host_array), _dtype_name(
            host_array.dtype
        )
    plain_backend = backend.without_watchers
    if tensor.__class__ is plain_backend.tensor_type:
        dtype_name = plain_backend.dtypes.neutral[tensor.dtype].name
        if dtype_name != "bfloat16":
            return plain_backend.bound.to_numpy(tensor), dtype_name
    bits, dtype_name = plain_backend.pack(tensor)
    return np.asarray(bits), dtype_name


def decode(value: Any, tensor: Callable[[int], Any], dtype: Callable[[str], Any] = as_dtype) -> Any:
    """Returns the argument or result that `encode` has turned into JSON.

    Args:
        value: the JSON.
        tensor: returns the tensor of a number.
        dtype: returns the dtype of a name.

    Raises:
        LookupError: if the value cannot be made again, such as a function.
    """
    if not isinstance(value, dict):
        return value
    ((kind_tag, content),) = value.items()
    if kind_tag in ("t", "h"):
        return tensor(content)
    if kind_tag in ("l", "u"):
        decoded_items = [decode(item, tensor, dtype) for item in content]
        return decoded_items if kind_tag == "l" else tuple(decoded_items)
    if kind_tag == "s":
        return slice(*[decode(bound, tensor, dtype) for bound in content])
    if kind_tag == "d":
        return {decode(k, tensor, dtype): decode(v, tensor, dtype) for k, v in content}
    if kind_tag == "g":
        generator = Generator(0)
        generator.load_state_dict(content)
        return generator
    if kind_tag == "o":
        raise LookupError(f"an argument is a {content}, which cannot be made again")
    if kind_tag == "k":
        return dtype(content)
    return Ellipsis if kind_tag == "e" else complex(*content)


def tensor_numbers(value: Any) -> Iterator[int]:
    """Yields the numbers of the tensors in the JSON of a value."""
    if isinstance(value, dict):
        ((kind_tag, content),) = value.items()
        if kind_tag in ("t", "h"):
            yield content
        elif kind_tag in ("l", "u", "s"):
            for item in content:
                yield from tensor_numbers(item)
        elif kind_tag == "d":
            for _, item in content:
                yield from tensor_numbers(item)


def _plain_values(value: Any) -> Iterator[Any]:
    if not isinstance(value, dict):
        yield value
        return
    ((kind_tag, content),) = value.items()
    if kind_tag in ("l", "u", "s"):
        for item in content:
            yield from _plain_values(item)
    elif kind_tag == "d":
        for _, item in content:
            yield from _plain_values(item)
    elif kind_tag in ("c", "k"):
        yield str(content)


def to_native(host: Host, backend: Any) -> Any:
    """Returns a host tensor as a native tensor of a backend, with memory of its own."""
    return backend.without_watchers.unpack(HostBits(np.ascontiguousarray(host.bits).reshape(host.shape), host.dtype))
