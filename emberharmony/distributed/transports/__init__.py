"""The transports: one file for each, loaded when it is chosen, and those of other packages as plugins."""

import importlib
import importlib.util
import os
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeAlias, cast

from emberharmony.core.errors import DistributedError, suggest
from emberharmony.distributed.environment import MPI_RANKS, TRANSPORT, Place
from emberharmony.distributed.transports.transport import Transport

Connect: TypeAlias = Callable[[Place, str, float], Transport]
"""A function of the place of a process, an option and a time-out, which returns a connected transport."""

GROUP = "emberharmony.transports"
"""The entry points of transports of other packages: functions like the `connect` of those here."""

NEEDS = {"single": "", "torch": "torch", "mlx": "mlx", "mpi": "mpi4py"}
"""The library that each transport needs, by the transport's name."""

_USUAL = {"torch": "gloo", "mlx": "ring"}
"""The default option of each transport, by the transport's name."""


def connect(name: str, place: Place, timeout: float) -> Transport:
    """Connects this process with all ranks by a transport, and returns the transport.

    Args:
        name: its name, perhaps with an option: "torch", "torch:nccl", "mlx", "mlx:jaccl", "mpi", "single".
        place: the place of this process.
        timeout: the seconds after which the connection and each call fail.

    Raises:
        DistributedError: if there is no such transport, its library is missing, or it is not available.
        LostError: if a rank does not come.
    """
    chosen_name, _, option = full_name(name).partition(":")
    transport = _connect_function(chosen_name)(place, option, timeout)
    transport.name = full_name(name)
    return transport


def full_name(name: str) -> str:
    """Returns the name of a transport with its default option added, as "torch:gloo" for "torch".

    Example:
        >>> from emberharmony.distributed.transports import full_name
        >>> full_name("torch"), full_name("torch:nccl"), full_name("mpi")
        ('torch:gloo', 'torch:nccl', 'mpi')
    """
    chosen_name, _, option = name.partition(":")
    option = option or _USUAL.get(chosen_name, "")
    return f"{chosen_name}:{option}" if option else chosen_name


def automatic_transport_name(place: Place) -> str:
    """Returns the transport for the way in which this process was started; it is the same one on all ranks.

    Raises:
        DistributedError: if there are several processes, and no library that connects them is installed.
    """
    if os.environ.get(TRANSPORT):
        return os.environ[TRANSPORT]
    if place.size == 1:
        return "single"
    if "RANK" not in os.environ and "MLX_HOSTFILE" in os.environ and is_installed("mlx"):
        return "mlx"
    was_started_by_mpi = any(name in os.environ for name in MPI_RANKS)
    names_by_preference = ("mpi", "torch", "mlx") if was_started_by_mpi else ("torch", "mlx")
    for name in names_by_preference:
        if is_installed(name):
            return name
    raise DistributedError(
        f"this is rank {place.rank} of {place.size}, but no transport is installed: pip install torch, mlx or mpi4py"
    )


def is_installed(name: str) -> bool:
    """Returns whether the library of a transport is installed, without importing it."""
    return not NEEDS[name] or importlib.util.find_spec(NEEDS[name]) is not None


def _connect_function(name: str) -> Connect:
    if name in NEEDS:
        if not is_installed(name):
            raise DistributedError(f"the transport {name!r} needs {NEEDS[name]}: pip install {NEEDS[name]}")
        module: Any = importlib.import_module(f"emberharmony.distributed.transports.{name}")
        return cast("Connect", module.connect)
    require_known(name)
    return cast("Connect", _plugins()[name].load())


def require_known(name: str) -> None:
    """Checks that a transport of a name exists, here or as a plugin.

    Raises:
        DistributedError: if not.
    """
    if name not in NEEDS and name not in _plugins():
        transport_names = [*NEEDS, *_plugins()]
        raise DistributedError(
            f"there is no transport {name!r}; there are {', '.join(transport_names)}{suggest(name, transport_names)}"
        )


def _plugins() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}
