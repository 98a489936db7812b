"""Runs of elementwise calls of NumPy as one loop, which Numba compiles.

The loop is a file in the folder for caches, beside which Numba keeps what it has compiled.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numba
import numpy as np

from emberharmony.backend.numpy.flow.programs import Blocks
from emberharmony.core.state.files import replace_bytes
from emberharmony.core.state.settings import cache_folder
from emberharmony.transforms.program import Number, Program, Register
from emberharmony.transforms.recorder import UnrecordableError


class Loops(Blocks):
    """The function of arrays of one shape, and of scalars, that runs a program of ufuncs in one loop.

    Args:
        program: the program.
        numbers: its numbers; a register stands for a scalar that the function takes.

    Raises:
        UnrecordableError: if a function of the program is none of NumPy's own.
    """

    least: ClassVar[int] = 0

    def __init__(self, program: Program, numbers: Sequence[Any]) -> None:
        super().__init__(program, numbers)
        self._loop, self._outputs = _compile_source(_loop_source(program, numbers)), range(len(program.outputs))

    def __call__(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """Returns the new arrays that the loop fills."""
        first_array = arrays[0]
        output_arrays = [np.empty_like(first_array) for _ in self._outputs]
        if first_array.ndim == 1:
            self._loop(*arrays, *output_arrays)
        else:
            self._loop(*[x.reshape(-1) if x.ndim else x for x in arrays], *[x.reshape(-1) for x in output_arrays])
        return output_arrays


def _loop_source(program: Program, numbers: Sequence[Any]) -> str:
    """Returns the source of a loop function, which takes input arrays, scalars as 0-d arrays, and output arrays.

    Raises:
        UnrecordableError: if a function of the program is none of NumPy's own.
    """
    scalar_indices = [i for i, x in enumerate(numbers) if x.__class__ is Register]
    argument_names = [
        f"{letter}{i}" for letter, numbered in (("i", range(program.inputs)), ("s", scalar_indices)) for i in numbered
    ]
    argument_names += [f"o{x}" for x in program.outputs]
    dtype_lines = [f"t = {argument_names[-1]}.dtype.type"]
    dtype_lines += [
        f"n{i} = " + (f"s{i}[()]" if i in scalar_indices else f"t({float(x)!r})") for i, x in enumerate(numbers)
    ]
    loop_lines = [f" v{i} = i{i}[k]" for i in range(program.inputs)]
    for call in program.calls:
        function_name = call.function.__name__
        if getattr(np, function_name, None) is not call.function:
            raise UnrecordableError(f"{function_name} is no function of NumPy")
        args_text = ", ".join(f"n{x}" if x.__class__ is Number else f"v{x}" for x in call.args)
        loop_lines.append(f" v{call.results[0]} = np.{function_name}({args_text})")
    loop_lines += [f" o{x}[k] = v{x}" for x in program.outputs]
    body_source = "\n ".join([*dtype_lines, f"for k in range({argument_names[0]}.size):", *loop_lines])
    return f"import numpy as np\n\n\ndef loop({', '.join(argument_names)}):\n {body_source}\n"


@lru_cache(256)
def _compile_source(source: str) -> Callable[..., Any]:
    """Returns the function of a source, which Numba compiles for each kind of arguments."""
    folder, file_name = cache_folder("numba"), "<compiled by ops.compile>"
    if folder is not None:
        file_name = os.path.join(folder, f"loop_{hashlib.sha256(source.encode()).hexdigest()[:24]}.py")
        if not os.path.exists(file_name):
            with replace_bytes(file_name) as stream:
                stream.write(source.encode())
    scope: dict[str, Any] = {"__name__": __name__}
    exec(compile(source, file_name, "exec"), scope)
    # Allow one rounding for a product and a sum; all else keeps the rules of IEEE 754 and the results of NumPy.
    numba_options = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}, "cache": folder is not None}
    compiled_loop: Callable[..., Any] = numba.njit(**numba_options)(scope["loop"])
    return compiled_loop
