"""The namespace that all ops share as their `__globals__`: native functions (`numpy_sin`), tensor types, converters.

All ops share it, so that the assignment of one `__code__` switches an op as a whole; and it is a module, so that
`torch.compile` finds the names. Other modules write into it with `publish`, `publish_type`, `set_flag` and
`set_flag_steps` alone.

The imports below let `typing.get_type_hints` resolve the annotations of the ops. The modules that cannot be imported
here, because they import this one, publish their classes.
"""

import sys
from collections.abc import Callable as Callable
from collections.abc import Iterable, Iterator
from collections.abc import Mapping as Mapping
from collections.abc import Sequence as Sequence
from itertools import chain
from typing import TYPE_CHECKING
from typing import Any as Any
from typing import Literal as Literal

from emberharmony.core.errors import EmberError as EmberError
from emberharmony.core.results import CompiledFunction as CompiledFunction
from emberharmony.core.results import EigResult as EigResult
from emberharmony.core.results import LUResult as LUResult
from emberharmony.core.results import PLUResult as PLUResult
from emberharmony.core.results import QRResult as QRResult
from emberharmony.core.results import SlogdetResult as SlogdetResult
from emberharmony.core.results import SVDResult as SVDResult
from emberharmony.core.results import UniqueAllResult as UniqueAllResult
from emberharmony.core.results import UniqueCountsResult as UniqueCountsResult
from emberharmony.core.results import UniqueInverseResult as UniqueInverseResult
from emberharmony.core.state.commits import Step, assignment, commit, steps_if_unchanged
from emberharmony.core.types import Axis as Axis
from emberharmony.core.types import CastTensorLike as CastTensorLike
from emberharmony.core.types import ComplexTensorLike as ComplexTensorLike
from emberharmony.core.types import DeviceLike as DeviceLike
from emberharmony.core.types import DTypeLike as DTypeLike
from emberharmony.core.types import HostArray as HostArray
from emberharmony.core.types import Norm as Norm
from emberharmony.core.types import Operand as Operand
from emberharmony.core.types import Shape as Shape
from emberharmony.core.types import SpatialPadding as SpatialPadding
from emberharmony.core.types import Tensor as Tensor
from emberharmony.core.types import TensorLike as TensorLike
from emberharmony.core.types import TensorOrDType as TensorOrDType
from emberharmony.core.types import Tensors as Tensors
from emberharmony.core.types import Varying as Varying

float32_default = True
"""A flag: whether the default float is float32, the dtype to which the native libraries convert integers."""

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Tells type checkers that other modules publish names; at run time an unknown name raises AttributeError."""


def publish(**values: Any) -> None:
    """Adds names that ops read as globals: functions, types, classes for annotations, flags with their first value.

    A name that is there already gets the new value. The names of a backend begin with its prefix. Its flags do not:
    the prefix and a word may be the native function of an op.
    """
    globals().update(values)


_TYPES: dict[str, tuple[type, tuple[str, ...]]] = {}
"""The types of `publish_type`, by their names, and the flags of each."""


def publish_type(name: str, tensor_type: type, *flags: str) -> None:
    """Adds a name that stands for a tensor type while all these flags are True, and else for None.

    A fast path that tests `x.__class__ is plain_array` need not read the flags, which costs 60 instructions each.
    """
    _TYPES[name] = tensor_type, flags
    publish(**{name: tensor_type if all(globals()[flag] for flag in flags) else None})


def published_type(name: str) -> tuple[type, tuple[str, ...]]:
    """Returns a type of `publish_type`, and the flags while which its name stands for it."""
    return _TYPES[name]


def set_flag(name: str, value: bool) -> None:
    """Sets a published flag, which conditions of fast paths read.

    Raises:
        KeyError: if no flag of that name was published.
    """
    commit(set_flag_steps(name, value))


def set_flag_steps(name: str, value: bool) -> Iterable[Step]:
    """Returns the steps by which `commit` sets a published flag together with other state.

    Raises:
        KeyError: if no flag of that name was published.
    """
    if not isinstance(globals()[name], bool):
        raise KeyError(name)
    module = sys.modules[__name__]
    steps: Iterator[Step] = iter([assignment(module, name, value)])
    for type_name, (tensor_type, flags) in _TYPES.items():
        if name in flags:
            flag_steps: Iterable[Step] = [assignment(module, type_name, tensor_type)]
            for flag in flags:  # `when` reads the flag while the steps run, after the one that sets it
                flag_steps = steps_if_unchanged(module, flag, True, flag_steps)
            steps = chain(steps, [assignment(module, type_name, None)], flag_steps)
    return steps
