"""Sources of programs that reproduce failing conformance calls."""

import re
from collections.abc import Mapping

from emberharmony.testing.call import Call
from emberharmony.testing.sample import Sample

_HEAD = """\
# {op} on {backend}, {check}, {dtype}, {label}:
# {failure}
{imports}
ops.set_backend({backend!r})
"""
ALWAYS = """\
import numpy as np
from numpy import inf, nan

from emberharmony import ops
"""
IMPORTS = {
    "bfloat16_of_numpy(": "from emberharmony.backend.host import bfloat16_of_numpy",
    "errors.": "from emberharmony.core import errors",
    "OPS[": "from emberharmony.core.registry import OPS",
    "gradcheck(": "from emberharmony.testing.gradient_check import gradcheck",
    "Stranger(": "from emberharmony.testing.inputs import Stranger",
    "non_contiguous_tensor(": "from emberharmony.testing.inputs import non_contiguous_tensor",
    "verify(": "from emberharmony.testing.verify import verify",
    "all_samples(": "from emberharmony.testing.samples import all_samples",
    "unpack(": "from emberharmony.testing.repr_source import unpack",
}
"""The import lines of a program, by the text that the program contains if it needs the import."""


def import_lines(program: str, lines_by_pattern: Mapping[str, str] = IMPORTS) -> str:
    """Returns the import lines that a program needs."""
    needed_lines = [
        line for pattern, line in lines_by_pattern.items() if re.search(rf"(?<![\w.]){re.escape(pattern)}", program)
    ]
    return ALWAYS + "".join(f"{line}\n" for line in needed_lines)


def snippet(sample: Sample, backend: str, call: Call, failure: str) -> str:
    """Returns a program that makes a call again, and ends with an error if it still fails."""
    program_source = call.program_source(sample)
    head_text = _HEAD.format(
        op=sample.op,
        backend=backend,
        check=call.check,
        dtype=call.dtype,
        label=call.label,
        failure=" ".join(failure.split())[:160],
        imports=import_lines(program_source),
    )
    return head_text + program_source
