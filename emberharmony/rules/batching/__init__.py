"""The batching rules of `vmap`, in files with the stems of the gradient rules.

A rule is a function `rule(m, *arguments)` with the decorator `batches("op")`: `m` calls the op itself and knows the
number of slices, and the arguments are those of the op in the declared order, where `Rows` stand for the tensors that
are mapped. It returns the result for all slices, with the mapped axis in front, or `NotImplemented` if the op has to
run once for each slice with such arguments. Ops need no rule if their declarations say that they are elementwise or
along which axes they work; nor do composites, whose bodies run on rows.
"""

from emberharmony.rules.batching import elementwise as elementwise
from emberharmony.rules.batching import indexing as indexing
from emberharmony.rules.batching import products as products
from emberharmony.rules.batching import segments as segments
from emberharmony.rules.batching import shape as shape
from emberharmony.rules.batching import solver as solver
from emberharmony.rules.batching import sorting as sorting
from emberharmony.rules.batching.forms import RULES as _RULES
from emberharmony.rules.batching.forms import call_along_axis, reduce_over_axes, rule_on_last_axes
from emberharmony.transforms import rule_registry as registry

RULES = registry.BATCHING
"""The rule of each op that has one."""

registry.BATCHING_ALONG.update({"axis": call_along_axis, "axes": reduce_over_axes, "matrix": rule_on_last_axes(2)})
# One update, and the last one: another thread that sees any rule must see them all.
RULES.update(_RULES)
