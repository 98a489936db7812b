"""How the array API standard passes the parameters of its functions, where the declaration of the op says otherwise.

The standard passes tensors by position alone, so that their names do not matter, and most options by keyword alone.
Options that only the op has follow, by keyword.
"""

import inspect
from functools import cache

_SIGNATURES = """
x, /, *, axis=, keepdims=: all any argmax argmin count_nonzero max mean min
x, /, *, axis=, dtype=, keepdims=: prod sum
x, /, *, axis=, correction=, keepdims=: std var
x, /, *, axis=, dtype=, include_initial=: cumulative_prod cumulative_sum
x, /, *, axis=, descending=, stable=: argsort sort
x, /, *, axis=, n=, prepend=, append=: diff
x, /, *, axis=: flip unstack
x, /, *, k=: tril triu
x, /, shift, *, axis=: roll
x, /, shape, *, copy=: reshape
x, /, axis=: expand_dims squeeze
x, /: round
x, /, min=, max=: clip
x, repeats, /, *, axis=: repeat
x, repetitions, /: tile
x, indices, /, *, axis=: take take_along_axis
x1, x2, /, *, axis=: linalg.cross vecdot
x1, x2, /, *, axes=: tensordot
x1, x2, /, *, invert=: isin
x1, x2, /, *, side=, sorter=: searchsorted
arrays, /, *, axis=: concat stack
*arrays, indexing=: meshgrid
start, /, stop=, step=, *, dtype=, device=: arange
start, stop, /, num=, *, dtype=, device=, endpoint=: linspace
n_rows, n_cols=, /, *, k=, dtype=, device=: eye
shape, *, dtype=, device=: empty ones zeros
x, /, *, dtype=, device=: empty_like ones_like zeros_like
shape, fill_value, *, dtype=, device=: full
x, /, fill_value, *, dtype=, device=: full_like
x, /, *, upper=: cholesky
x, /, *, offset=: linalg.diagonal
x, /, *, offset=, dtype=: linalg.trace
x, /, *, keepdims=, ord=: matrix_norm
x, /, *, axis=, keepdims=, ord=: vector_norm
x, /, *, rtol=: matrix_rank pinv
x, /, *, mode=: qr
x, /, *, full_matrices=: svd
x, /, *, n=, axis=, norm=: fft ifft rfft irfft hfft ihfft
x, /, *, s=, axes=, norm=: fftn ifftn rfftn irfftn
x, /, *, axes=: fftshift ifftshift
n, /, *, d=, dtype=, device=: fftfreq rfftfreq
"""


class Passed:
    """A parameter of a function of the standard: its name, and whether it is passed by position or by keyword.

    Attributes:
        name: the name, without stars.
        kind: a kind of `inspect.Parameter`.
    """

    __slots__ = ("kind", "name")

    def __init__(self, name: str, kind: int) -> None:
        self.name, self.kind = name, kind


@cache
def _signature_table() -> dict[str, tuple[Passed, ...]]:
    signature_by_op: dict[str, tuple[Passed, ...]] = {}
    for line in _SIGNATURES.strip().splitlines():
        parameters, _, function_names = line.partition(": ")
        signature_by_op |= dict.fromkeys(function_names.split(), tuple(_read_parameters(parameters)))
    return signature_by_op


def _read_parameters(parameters: str) -> list[Passed]:
    """Returns the parameters that a line of the table of signatures lists."""
    parameter_class = inspect.Parameter
    declarations = parameters.replace("=", "").split(", ")
    next_kind: int = parameter_class.POSITIONAL_OR_KEYWORD
    passed_parameters: list[Passed] = []
    for declaration in declarations:
        if declaration == "/":
            for parameter in passed_parameters:
                parameter.kind = parameter_class.POSITIONAL_ONLY
        elif declaration.startswith("*"):
            next_kind = parameter_class.KEYWORD_ONLY
            if declaration != "*":
                passed_parameters.append(Passed(declaration[1:], parameter_class.VAR_POSITIONAL))
        else:
            passed_parameters.append(Passed(declaration, next_kind))
    return passed_parameters


def signature_of(part: str, name: str) -> tuple[Passed, ...] | None:
    """Returns the parameters of a function of the standard; None if the table of signatures lacks it.

    Args:
        part: the namespace of the function, such as "linalg"; empty for the main one.
        name: the name of the function there.
    """
    signature_by_name = _signature_table()
    return signature_by_name.get(f"{part}.{name}", signature_by_name.get(name))
