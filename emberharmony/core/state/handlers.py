"""Exceptions that are not the library's to translate."""

from types import FrameType


def passing(error: BaseException) -> BaseException | None:
    """Returns the exception that reaches the caller as it is: this one, or one that it was explicitly raised from.

    Such are warnings that a filter makes exceptions, the FloatingPointError that `numpy.seterr` asks for, and the
    exception of a signal handler, which has nothing to do with the op that it interrupted. None if there is none.
    """
    found: BaseException | None = error
    while found is not None and not isinstance(found, (Warning, FloatingPointError, TimeoutError)):
        if _from_handler(found):
            break
        found = found.__cause__
    return found


def _from_handler(error: BaseException) -> bool:
    """Returns whether a frame that the exception went through is that of a signal handler, or of a trace function.

    Python gives these the interrupted frame, which is the one below theirs, as an argument.
    """
    trace = error.__traceback__
    while trace is not None:
        if _knows_its_caller(trace.tb_frame):
            return True
        trace = trace.tb_next
    return False


def _knows_its_caller(frame: FrameType) -> bool:
    caller = frame.f_back
    if caller is None or frame.f_code.co_name == "<module>":
        return False
    for value in frame.f_locals.values():
        if value is caller or (type(value) is tuple and any(item is caller for item in value)):
            return True
    return False
