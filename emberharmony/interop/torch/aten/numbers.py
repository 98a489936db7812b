"""Operators in captured programs on Python numbers, such as lengths of axes."""

import math
import operator
from typing import Any

from emberharmony.interop.torch.aten.table import aten, register_names

register_names("operator.add")(operator.add)
register_names("operator.and_")(operator.and_)
register_names("operator.eq")(operator.eq)
register_names("operator.floordiv")(operator.floordiv)
register_names("operator.ge")(operator.ge)
register_names("operator.gt")(operator.gt)
register_names("operator.le")(operator.le)
register_names("operator.lt")(operator.lt)
register_names("operator.mod")(operator.mod)
register_names("operator.mul")(operator.mul)
register_names("operator.ne")(operator.ne)
register_names("operator.neg")(operator.neg)
register_names("operator.or_")(operator.or_)
register_names("operator.pow")(operator.pow)
register_names("operator.sub")(operator.sub)
register_names("operator.truediv")(operator.truediv)
register_names("math.ceil")(math.ceil)
register_names("math.floor")(math.floor)
register_names("math.trunc")(math.trunc)
register_names("torch.sym_float")(float)
register_names("torch.sym_int")(int)
register_names("torch.sym_ite")(lambda condition, x, other: x if condition else other)
register_names("torch.sym_max")(max)
register_names("torch.sym_min")(min)
register_names("torch.sym_not")(operator.not_)
register_names("torch.sym_sum")(sum)


@aten("sym_size.int", "size.int")
def size(x: Any, dim: int) -> int:
    """Returns the length of an axis."""
    return int(x.shape[dim])


@aten("sym_numel", "numel")
def numel(x: Any) -> int:
    """Returns the number of elements."""
    return math.prod(x.shape)
