"""The public functions that observe ops; what they need is imported when they are called."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from emberharmony.core.deferred import Deferred

if TYPE_CHECKING:
    from emberharmony.transforms import profiling, recording
else:
    profiling = Deferred("emberharmony.transforms.profiling")
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


def profile(backward: bool = False, memory: bool = False) -> "profiling.Profiling":
    """Returns a block that measures where the time goes: `with ops.profile() as p:`, then `print(p.table())`.

    The profile is a log as that of `ops.record`, with the time of each call also where the library computes later: on
    MLX each result is computed at once, and on an accelerator each call is waited for, so the program takes longer.
    Tables by op, module and line show calls, times, operations and bytes per second, and the share of what this machine
    reaches in a product of matrices, or in an addition of large tensors. `save_chrome_trace` and `save_speedscope`
    write files for viewers. `emberharmony profile script.py` does all this for a program.

    Args:
        backward: see `ops.record`.
        memory: whether to measure the most memory that is in use in each call beyond that before it. It is known on
            NumPy, where it takes time, on MLX and on CUDA.

    Returns:
        a context manager that gives the `Profile`.

    Example:
        >>> with ops.profile() as p:
        ...     y = ops.matmul(ops.ones((64, 64)), ops.ones((64, 64)))
        >>> {row.name: row.operations for row in p.rows("op")}["matmul"]
        524288
    """
    return profiling.Profiling(backward, memory)
