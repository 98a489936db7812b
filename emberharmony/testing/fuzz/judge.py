"""The rules for a fuzzed call: it may return or raise a documented error, and must not change its arguments."""

import re
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.backend.choice import current
from emberharmony.core.errors import BackendExecutionError, EmberError
from emberharmony.core.registry import OPS
from emberharmony.testing.fuzz import scope

PROGRAM = "<fuzz>"
"""The file name under which the source of a call is compiled."""
FINDINGS = {
    "untyped": "raises an untyped exception",
    "changed": "changes its input",
    "outside": "reads outside of a tensor, which checked mode reports",
}
_LARGEST = 2**25
"""Arrays of more bytes, most of which are broadcast, are not read."""
_SIGNATURE = re.compile(r"(?P<name>[\w<>]+)\(\) (takes |missing |got (an unexpected|multiple|some positional-only))")


def verdict(error: BaseException) -> str:
    """Returns the kind of an exception: "typed", "native", "admitted" or "untyped"; the last is a finding.

    "native" is a `BackendExecutionError`, which is typed but has no more specific class. "admitted" are a
    `MemoryError`, a `TypeError` of Python about the signature of an op or of a function of the program, and whatever
    the program's own functions and objects raise.
    """
    if isinstance(error, EmberError):
        return "native" if type(error) is BackendExecutionError else "typed"
    if isinstance(error, MemoryError):
        return "admitted"
    signature_match = _SIGNATURE.search(str(error)) if isinstance(error, TypeError) else None
    if signature_match and (signature_match["name"] in OPS or signature_match["name"] in ("<lambda>", "Below")):
        return "admitted"
    return "admitted" if _file_of_error(error) in (PROGRAM, scope.__file__) else "untyped"


def _file_of_error(error: BaseException) -> str:
    """Returns the name of the file in which an exception was raised."""
    traceback, file_name = error.__traceback__, ""
    while traceback is not None:
        file_name, traceback = traceback.tb_frame.f_code.co_filename, traceback.tb_next
    return file_name


def digest(values: Iterable[Any]) -> list[str]:
    """Returns texts that describe arguments, tensors by a checksum: a call that changes no argument keeps them."""
    description_texts: list[str] = []
    pending_values = list(values)
    while pending_values:
        value = pending_values.pop()
        if isinstance(value, (list, tuple)):
            description_texts.append(f"{type(value).__name__} of {len(value)}")
            pending_values += value
        elif isinstance(value, dict):
            description_texts.append(f"dict of {list(value)!r:.200}")
            pending_values += value.values()
        elif isinstance(value, np.ndarray):
            description_texts.append(_describe_array(value))
        elif current().is_tensor(value):
            description_texts.append(f"tensor {_describe_tensor(value)}")
        elif isinstance(value, (bool, int, float, complex, str, bytes, bytearray, np.generic)):
            description_texts.append(f"{type(value).__name__} {value!r:.500}")
        else:
            description_texts.append(type(value).__name__)  # reading an iterator would exhaust it
    return description_texts


def _describe_array(array: np.ndarray[Any, Any]) -> str:
    dtype_and_shape = f"{array.dtype} {array.shape}"
    if array.nbytes > _LARGEST or array.dtype.hasobject:
        return dtype_and_shape
    return f"{dtype_and_shape} {zlib.crc32(np.ascontiguousarray(array).tobytes())}"


def _describe_tensor(tensor: Any) -> str:
    if int(np.prod(tuple(tensor.shape), dtype=object)) * 16 > _LARGEST:
        return str(tensor.shape)
    return _describe_array(np.asarray(ops.to_numpy(tensor)))
