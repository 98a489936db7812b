"""The VJP rules that the tape uses: they turn the cotangent of an op's result into those of its arguments.

There is one file per category of ops. A rule is either a tuple with one function per argument (None for an argument
that has no gradient), or one function that returns the gradients of all arguments. Each function takes
`(g, y, *arguments)`: the cotangent, the op's result, and the op's arguments in the declared order. Rules are written
with ops, so they can themselves be differentiated. A rule may return a gradient in the shape of the result: the tape
sums it over the axes that the argument was broadcast along, and casts it to the argument's dtype.

In a tuple, a function names a parameter with an underscore in front (`_x`) if it reads no more than the shape and the
dtype of that tensor. The tape then keeps only these two, unless another function of the call reads the tensor.

The module `transforms.tape` explains the convention for complex numbers.
"""

from collections.abc import Callable
from typing import Any

from emberharmony.rules.algebra.products import RULES as PRODUCTS
from emberharmony.rules.arrays.creation import RULES as CREATION
from emberharmony.rules.arrays.indexing import RULES as INDEXING
from emberharmony.rules.arrays.shape import RULES as SHAPE
from emberharmony.rules.constant import LEAVING as LEAVING
from emberharmony.rules.constant import REFUSED as REFUSED
from emberharmony.rules.device import RULES as DEVICES
from emberharmony.rules.elementwise.complex_numbers import RULES as COMPLEXES
from emberharmony.rules.elementwise.elementary import RULES as ELEMENTARY
from emberharmony.rules.elementwise.rounding import RULES as ROUNDING
from emberharmony.rules.elementwise.special import RULES as SPECIAL
from emberharmony.rules.flow.transforms import RULES as TRANSFORMS
from emberharmony.rules.images.fft import RULES as FFT
from emberharmony.rules.math import RULES as MATH
from emberharmony.rules.neural.activation import RULES as ACTIVATION
from emberharmony.rules.neural.layers import RULES as LAYERS
from emberharmony.rules.neural.losses import RULES as LOSSES
from emberharmony.rules.neural.normalization import RULES as NORMALIZATION
from emberharmony.rules.neural.quantization import RULES as QUANTIZATION
from emberharmony.rules.neural.recurrent import RULES as RECURRENT
from emberharmony.rules.reductions.histograms import RULES as HISTOGRAMS
from emberharmony.rules.reductions.reduction import RULES as REDUCTION
from emberharmony.rules.reductions.segments import RULES as SEGMENTS
from emberharmony.rules.reductions.sorting import RULES as SORTING
from emberharmony.rules.solver import RULES as SOLVER
from emberharmony.rules.tensor import RULES as TENSOR
from emberharmony.transforms import rule_registry as registry

Rule = tuple[Callable[..., Any] | None, ...] | Callable[..., Any]

RULES = registry.RULES
"""The rule of each op that has one; composites need none."""
registry.LEAVING.update(LEAVING)
registry.REFUSED.update(REFUSED)

# One update, and the last one: another thread that sees any rule must see them all.
RULES.update(
    {
        op: rule
        for rules in (
            *(ACTIVATION, COMPLEXES, CREATION, DEVICES, ELEMENTARY, FFT, HISTOGRAMS, INDEXING, LAYERS, LOSSES, MATH),
            *(
                NORMALIZATION,
                PRODUCTS,
                QUANTIZATION,
                RECURRENT,
                REDUCTION,
                ROUNDING,
                SEGMENTS,
                SHAPE,
                SOLVER,
                SORTING,
                SPECIAL,
            ),
            *(TENSOR, TRANSFORMS),
        )
        for op, rule in rules.items()
    }
)
