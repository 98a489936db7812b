"""The batching rules of `vmap`, in files with the stems of the gradient rules.

A rule is a function `rule(m, *arguments)`: `m` calls the op itself and knows the number of slices, and the arguments
are those of the op in the declared order, where `Rows` stand for the tensors that are mapped. It returns the result for
all slices, with the mapped axis in front, or `NotImplemented` if the op has to run once for each slice with such
arguments. Elementwise ops have one rule, and composites need none: their bodies run on rows.
"""

from emberharmony.rules.batching.elementwise import RULES as ELEMENTWISE
from emberharmony.rules.batching.fft import RULES as FFT
from emberharmony.rules.batching.indexing import RULES as INDEXING
from emberharmony.rules.batching.looped import LOOPED as LOOPED
from emberharmony.rules.batching.products import RULES as PRODUCTS
from emberharmony.rules.batching.reduction import RULES as REDUCTION
from emberharmony.rules.batching.segments import RULES as SEGMENTS
from emberharmony.rules.batching.shape import RULES as SHAPE
from emberharmony.rules.batching.solver import RULES as SOLVER
from emberharmony.rules.batching.sorting import RULES as SORTING
from emberharmony.transforms import rules as registry

RULES = registry.BATCHING
"""The rule of each op that has one."""

# One update: another thread that sees any rule must see them all.
RULES.update(ELEMENTWISE | FFT | INDEXING | PRODUCTS | REDUCTION | SEGMENTS | SHAPE | SOLVER | SORTING)
