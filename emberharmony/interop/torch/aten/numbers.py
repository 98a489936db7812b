"""What programs compute with lengths and other numbers of Python."""

import math
import operator
from typing import Any

from emberharmony.interop.torch.aten.table import aten, entered

entered("operator.add")(operator.add)
entered("operator.and_")(operator.and_)
entered("operator.eq")(operator.eq)
entered("operator.floordiv")(operator.floordiv)
entered("operator.ge")(operator.ge)
entered("operator.gt")(operator.gt)
entered("operator.le")(operator.le)
entered("operator.lt")(operator.lt)
entered("operator.mod")(operator.mod)
entered("operator.mul")(operator.mul)
entered("operator.ne")(operator.ne)
entered("operator.neg")(operator.neg)
entered("operator.or_")(operator.or_)
entered("operator.pow")(operator.pow)
entered("operator.sub")(operator.sub)
entered("operator.truediv")(operator.truediv)
entered("math.ceil")(math.ceil)
entered("math.floor")(math.floor)
entered("math.trunc")(math.trunc)
entered("torch.sym_float")(float)
entered("torch.sym_int")(int)
entered("torch.sym_ite")(lambda condition, x, other: x if condition else other)
entered("torch.sym_max")(max)
entered("torch.sym_min")(min)
entered("torch.sym_not")(operator.not_)
entered("torch.sym_sum")(sum)


@aten("sym_size.int", "size.int")
def size(x: Any, dim: int) -> int:
    """Returns the length of an axis."""
    return int(x.shape[dim])


@aten("sym_numel", "numel")
def numel(x: Any) -> int:
    """Returns the number of elements."""
    return math.prod(x.shape)
