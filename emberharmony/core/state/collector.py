"""Pauses the garbage collector while modules are imported."""

import gc
from _thread import allocate_lock


class PausedCollector:
    """A context manager that stops the cyclic garbage collector in its block, if it runs.

    An import makes thousands of objects that live as long as the process. The collector would examine them again and
    again and free none, which costs `import emberharmony.ops` 5 million instructions (CPython 3.11).

    Args:
        lasting: whether what the block makes lives as long as the process. The collector then takes it for old, and
            does not examine it all at its next run, which takes 10 million instructions.
    """

    _lock = allocate_lock()
    _blocks = 0
    """How many blocks run now, in all threads: the last one that ends switches the collector on again."""
    _collecting = False
    """Whether the collector ran when the first of them began."""

    def __init__(self, lasting: bool = False) -> None:
        self._lasting = lasting

    def __enter__(self) -> None:
        with PausedCollector._lock:
            if PausedCollector._blocks == 0:
                PausedCollector._collecting = gc.isenabled()
                gc.disable()
            PausedCollector._blocks += 1

    def __exit__(self, *raised: object) -> None:
        with PausedCollector._lock:
            PausedCollector._blocks -= 1
            if PausedCollector._blocks > 0 or not PausedCollector._collecting:
                return
            if self._lasting and gc.get_freeze_count() == 0:  # otherwise `unfreeze` would undo what the program froze
                gc.freeze()
                gc.unfreeze()  # into the oldest generation, whatever their age
            gc.enable()
