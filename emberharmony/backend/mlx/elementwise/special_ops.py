"""Special functions, on MLX: `special` has them, which the first call of one of them imports."""

from functools import partial
from typing import TYPE_CHECKING, Any

from emberharmony.backend.shared.elementwise.special_derivatives import DERIVATIVES, INNER
from emberharmony.core.deferred import Deferred

if TYPE_CHECKING:
    from emberharmony.backend.mlx.elementwise import special
else:
    special = Deferred("emberharmony.backend.mlx.elementwise.special")


def _call_op(name: str, *arguments: Any) -> Any:
    return getattr(special.OPS, name)(*arguments)


class MLXSpecialOps:
    """Holds the ops of `ops/elementwise/special.py` and `ops/elementwise/transcendental.py`.

    Each is one function of MLX's operators, in float64 on the CPU, with derivatives in closed form. The bodies take up
    to 2 times as long, and so do their gradients.
    """

    @staticmethod
    def _inner_special(name: str, *tensors: Any) -> Any:
        """Returns one of the derivatives in `special_derivatives.INNER`, which can be differentiated again."""
        return getattr(special.DERIVED, name)(*tensors)


for _name in DERIVATIVES:
    if _name not in INNER:
        setattr(MLXSpecialOps, _name, staticmethod(partial(_call_op, _name)))
