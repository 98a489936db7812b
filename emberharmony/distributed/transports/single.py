"""The transport of a run with one process."""

from emberharmony.core.errors import DistributedError
from emberharmony.distributed.environment import Place
from emberharmony.distributed.transports.transport import Transport, Vector


class SingleTransport(Transport):
    """The transport of a run with one process, whose collectives exchange nothing."""

    def all_sum(self, vector: Vector) -> None:
        """Leaves the vector as it is."""

    def all_gather(self, vector: Vector) -> Vector:
        """Returns the vector as the only row."""
        return vector[None]

    def broadcast(self, vector: Vector, root: int) -> None:
        """Leaves the vector as it is."""


def connect(place: Place, option: str, timeout: float) -> Transport:
    """Returns the transport of a run with one process.

    Raises:
        DistributedError: if there are several processes.
    """
    if place.size > 1:
        raise DistributedError(f"the transport 'single' is for one process, but this is one of {place.size}")
    return SingleTransport(place, timeout)
