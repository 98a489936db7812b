"""Finds exceptions that must reach the caller unchanged, because they are not errors of an op."""

from types import FrameType

PASSING: list[type[BaseException]] = [Warning, FloatingPointError, TimeoutError]
"""Classes of such exceptions; a backend adds those by which its library leaves a function that the caller passed."""


def passing_error(error: BaseException) -> BaseException | None:
    """Returns the exception that must reach the caller unchanged, or None: `error` or one of its explicit causes.

    These exceptions are warnings that a filter turns into errors, the FloatingPointError that `numpy.seterr` requests,
    TimeoutError, the others in `PASSING`, and any exception from a signal handler, which has nothing to do with the op
    that it interrupted. So are those that a watcher of the calls raises, which `transforms.observe` marks by the
    attribute `of_watcher`.
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, tuple(PASSING)):
        if hasattr(cause, "of_watcher") or _came_from_handler(cause):
            break
        cause = cause.__cause__
    return cause


def _came_from_handler(error: BaseException) -> bool:
    """Returns whether the exception passed through a frame of a signal handler or of a trace function.

    Python calls these functions from the interrupted frame and passes that frame to them as an argument.
    """
    trace = error.__traceback__
    while trace is not None:
        if _refers_to_caller(trace.tb_frame):
            return True
        trace = trace.tb_next
    return False


def _refers_to_caller(frame: FrameType) -> bool:
    """Returns whether a local variable of the frame, or a tuple in one, holds the frame's caller."""
    caller = frame.f_back
    # The locals of a module are its globals, which may hold a frame for other reasons.
    if caller is None or frame.f_code.co_name == "<module>":
        return False
    for value in frame.f_locals.values():
        if value is caller or (type(value) is tuple and any(item is caller for item in value)):
            return True
    return False
