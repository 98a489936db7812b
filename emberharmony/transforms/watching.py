"""The public functions that observe ops; what they need is imported when they are called."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from emberharmony.core.deferred import Deferred

if TYPE_CHECKING:
    from emberharmony.transforms import recording
else:
    recording = Deferred("emberharmony.transforms.recording")


def record(backward: bool = False, capture: "str | Sequence[str] | None" = None) -> "recording.Recording":
    """Returns a block that records the calls of ops of this thread or asyncio task: `with ops.record() as log:`.

    The log is a sequence of events, one for each call in the order in which they begin, with the op, the module of the
    model, shapes, dtypes, the time, the bytes of the result and the user's line. Calls inside of composites have a
    depth above 0; those of depth 0 are the same on every backend. Functions that `ops.compile` compiled run uncompiled
    in the block. On MLX the time is that of building the graph, unless a value is read.

    Args:
        backward: whether gradients are computed by the tape on PyTorch and MLX too, which takes longer, so that the ops
            of the backward pass are recorded. On NumPy they always are.
        capture: names of modules, in which `*` stands for any text, whose last result the log keeps; None keeps those
            of all modules, and an empty list none.

    Returns:
        a context manager that gives the `Log`.

    Example:
        >>> with ops.record() as log:
        ...     y = ops.tanh(ops.matmul(ops.ones((2, 3)), ops.ones((3, 4))))
        >>> [event.op for event in log if event.depth == 0]
        ['ones', 'ones', 'matmul', 'tanh']
        >>> log.calls("matmul")[0].shapes
        ((2, 3), (3, 4))
    """
    return recording.Recording(backward, capture)
