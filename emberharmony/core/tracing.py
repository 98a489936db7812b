"""What stands for a tensor while a wrapper of a backend records: dispatch hands every call with one to its wrapper."""

from typing import Any


class Traced:
    """Is the base of what is passed in place of a native tensor while its ops are recorded.

    No fast path takes one, for it is no native tensor; so nothing is paid for it where none is.
    """

    __slots__ = ()

    def run(self, backend: Any, op: str, arguments: tuple[Any, ...]) -> Any:
        """Runs an op on arguments of which this is one; they are as dispatch packs them, in the declared order."""
        raise NotImplementedError
