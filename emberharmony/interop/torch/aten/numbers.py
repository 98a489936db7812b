"""What programs compute with lengths and other numbers of Python."""

import math
import operator
from typing import Any

from emberharmony.interop.torch.aten.table import aten, enter_names

enter_names("operator.add")(operator.add)
enter_names("operator.and_")(operator.and_)
enter_names("operator.eq")(operator.eq)
enter_names("operator.floordiv")(operator.floordiv)
enter_names("operator.ge")(operator.ge)
enter_names("operator.gt")(operator.gt)
enter_names("operator.le")(operator.le)
enter_names("operator.lt")(operator.lt)
enter_names("operator.mod")(operator.mod)
enter_names("operator.mul")(operator.mul)
enter_names("operator.ne")(operator.ne)
enter_names("operator.neg")(operator.neg)
enter_names("operator.or_")(operator.or_)
enter_names("operator.pow")(operator.pow)
enter_names("operator.sub")(operator.sub)
enter_names("operator.truediv")(operator.truediv)
enter_names("math.ceil")(math.ceil)
enter_names("math.floor")(math.floor)
enter_names("math.trunc")(math.trunc)
enter_names("torch.sym_float")(float)
enter_names("torch.sym_int")(int)
enter_names("torch.sym_ite")(lambda condition, x, other: x if condition else other)
enter_names("torch.sym_max")(max)
enter_names("torch.sym_min")(min)
enter_names("torch.sym_not")(operator.not_)
enter_names("torch.sym_sum")(sum)


@aten("sym_size.int", "size.int")
def size(x: Any, dim: int) -> int:
    """Returns the length of an axis."""
    return int(x.shape[dim])


@aten("sym_numel", "numel")
def numel(x: Any) -> int:
    """Returns the number of elements."""
    return math.prod(x.shape)
