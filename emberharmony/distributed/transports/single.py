"""The transport of a process that is alone."""

from emberharmony.core.errors import DistributedError
from emberharmony.distributed.environment import Place
from emberharmony.distributed.transports.transport import Transport, Vector


class SingleTransport(Transport):
    """Carries nothing: there is one process."""

    def all_sum(self, vector: Vector) -> None:
        """Leaves the vector as it is."""

    def all_gather(self, vector: Vector) -> Vector:
        """Returns the vector as the only row."""
        return vector[None]

    def broadcast(self, vector: Vector, root: int) -> None:
        """Leaves the vector as it is."""


def connect(place: Place, option: str, timeout: float) -> Transport:
    """Returns the transport.

    Raises:
        DistributedError: if there are several processes.
    """
    if place.size > 1:
        raise DistributedError(f"the transport 'single' is for one process, but this is one of {place.size}")
    return SingleTransport(place, timeout)
