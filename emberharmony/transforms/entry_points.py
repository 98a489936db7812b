"""The public functions that observe ops; what they need is imported when they are called."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, overload

from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import ArgumentError
from emberharmony.core.state import checked_mode

if TYPE_CHECKING:
    from emberharmony.transforms import profiling
    from emberharmony.transforms.checks import block
    from emberharmony.transforms.logs import log
else:
    block = Deferred("emberharmony.transforms.checks.block")
    profiling = Deferred("emberharmony.transforms.profiling")
    log = Deferred("emberharmony.transforms.logs.log")


def record(
    backward: bool = False, capture: "str | Sequence[str] | None" = None, values: bool = False
) -> "log.LogBlock":
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
        values: whether each event has the mean, the standard deviation, the smallest and the largest element and the
            norm of its results (`event.values`). Every result is then computed and read, so the program takes longer;
            the log keeps seven numbers for each tensor, and not the tensors.

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
    return log.LogBlock(backward, capture, values)


def profile(backward: bool = False, memory: bool = False) -> "profiling.Profiling":
    """Returns a block that measures where the time goes: `with ops.profile() as p:`, then `print(p.table())`.

    The profile is a log as that of `ops.record`, with the time of each call also where the library computes later: on
    MLX each result is computed at once, and on an accelerator each call is waited for, so the program takes longer.
    Tables by op, module and line show calls, times, operations and bytes per second, and the share of what this machine
    reaches in a product of matrices, or in an addition of large tensors. `save_chrome_trace` and `save_speedscope`
    write files for viewers. `emberharmony profile script.py` does all this for a program.

    Args:
        backward: whether gradients are computed by the tape on PyTorch and MLX too, which takes longer, so that the ops
            of the backward pass are measured. On NumPy they always are.
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


@overload
def checked(on: bool = True, /) -> "checked_mode.checked": ...


@overload
def checked(  # type: ignore[overload-overlap]  # the other names give a list of findings
    check: Literal["bounds"], /
) -> "checked_mode.checked": ...


@overload
def checked(
    *checks: str,
    policy: str | None = None,
    every: str | None = None,
    judge: str = "born",
    infinities: bool = True,
    lazy: int = 1000,
    moves: int = checked_mode.FEW_MOVES,
) -> "block.Checking": ...


def checked(
    *checks: "str | bool",
    policy: str | None = None,
    every: str | None = None,
    judge: str = "born",
    infinities: bool = True,
    lazy: int = 1000,
    moves: int = checked_mode.FEW_MOVES,
) -> "checked_mode.checked | block.Checking":
    """Returns a block, or a decorator, in which ops of this thread or asyncio task are checked.

    "nan" finds the op that makes the first NaN or infinity of finite numbers, forwards and backwards, and a loss that
    is NaN although no op made one, by the data or by an operator such as `x / y`. "bounds", which is meant without a
    name, checks tensors of indices, which MLX does not: it reads arbitrary memory. "dtype" finds
    results that are wider than the arguments, "device" arguments on several devices and parameters that change their
    backend again and again, "lazy" graphs of MLX that nothing evaluates, and "gradients" copies to NumPy of tensors
    that PyTorch's own autograd records. `False` turns all checks off.

    The environment variable EMBERHARMONY_CHECK=nan,bounds does the same for the thread that imports the package, and
    EMBERHARMONY_CHECK=1 checks bounds in the whole process.

    Args:
        checks: names of checks.
        policy: "raise", "warn" (once for each line) or "record", which only adds to the list that the block gives. By
            default "nan" raises and the others warn; an index out of bounds always raises.
        every: when "nan" reads results: after each "op", or at once for a "step", which ends where `ops.eval` or
            another op reads values, or with the block. By default a step on MLX and on accelerators, else an op.
        judge: "born", or "used": a NaN counts only when a loss, its gradients or a tensor that is read has one, so
            those that `ops.where` masks do not count.
        infinities: whether "nan" finds infinities too.
        lazy: how many operations may wait on MLX.
        moves: how often a parameter may change its backend.

    Returns:
        a context manager; with a check that watches ops it gives the list of findings.

    Raises:
        ArgumentError: if a check, or an option, is unknown.

    Example:
        >>> with ops.checked("nan", policy="record") as found:
        ...     y = ops.divide(ops.array([1.0, 2.0]), ops.array([0.0, 1.0]))
        >>> found[0].op
        'divide'
        >>> with ops.checked():
        ...     ops.take([10, 20, 30], ops.array([0, 2])).tolist()
        [10, 30]
    """
    if all(isinstance(check, bool) for check in checks):
        if len(checks) > 1:
            raise ArgumentError("checked() takes True, False, or the names of checks")
        return checked_mode.checked(bool(checks[0]) if checks else True)
    check_names = checked_mode.names_of_checks(checks, "checked()")
    if check_names == {"bounds"}:
        return checked_mode.checked()
    return block.Checking(block.CheckOptions(check_names, policy, every, judge, infinities, lazy, moves))
