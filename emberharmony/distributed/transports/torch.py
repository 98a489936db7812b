"""The transport over `torch.distributed`: gloo between processors, NCCL between GPUs of NVIDIA."""

import contextlib
import os
import re
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from emberharmony.core.errors import DistributedError
from emberharmony.distributed.environment import Place
from emberharmony.distributed.transports.transport import LostError, Transport, Vector

c10d: Any = dist
"""The module `torch.distributed` without its type, because it does not declare some names that are used here."""


class TorchTransport(Transport):
    """The transport that sends vectors by a process group of PyTorch, an existing one or a new one.

    Args:
        place: rank and size.
        option: "gloo" or "nccl".
        timeout: the seconds after which a call fails.
    """

    def __init__(self, place: Place, option: str, timeout: float) -> None:
        super().__init__(place, timeout)
        self._device: Any = torch.device("cuda", place.local_rank) if option == "nccl" else torch.device("cpu")
        self._owns_group = not dist.is_initialized()
        if self._owns_group:
            with _raise_lost_error():
                store = _connected_store(place, timeout)
                time_limit = timedelta(seconds=timeout)
                dist.init_process_group(option, store=store, rank=place.rank, world_size=place.size, timeout=time_limit)
        elif (dist.get_rank(), dist.get_world_size()) != (place.rank, place.size):
            raise DistributedError(
                f"torch.distributed is initialised as rank {dist.get_rank()} of {dist.get_world_size()}, but the "
                f"environment says {place.rank} of {place.size}"
            )

    def all_sum(self, vector: Vector) -> None:
        """Replaces a vector by the sum of the vectors of all ranks."""
        with self._tensor_on_device(vector) as tensor, _raise_lost_error():
            dist.all_reduce(tensor)

    def all_gather(self, vector: Vector) -> Vector:
        """Returns the vectors of all ranks, one in each row."""
        with self._tensor_on_device(vector) as tensor, _raise_lost_error():
            rows = torch.empty((self.size, tensor.numel()), dtype=tensor.dtype, device=self._device)
            dist.all_gather(list(rows.unbind()), tensor)
            return rows.cpu().numpy()

    def all_to_all(self, rows: Vector) -> Vector:
        """Sends row r to rank r, and returns the rows received: row r comes from rank r."""
        with self._tensor_on_device(rows) as tensor, _raise_lost_error():
            received_rows = torch.empty_like(tensor)
            dist.all_to_all_single(received_rows, tensor)
            return received_rows.cpu().numpy()

    def broadcast(self, vector: Vector, root: int) -> None:
        """Replaces a vector by that of a rank."""
        with self._tensor_on_device(vector) as tensor, _raise_lost_error():
            dist.broadcast(tensor, root)

    def send(self, vector: Vector, to: int) -> None:
        """Sends a vector to a rank."""
        with self._tensor_on_device(vector) as tensor, _raise_lost_error():
            dist.send(tensor, to)

    def recv(self, vector: Vector, source: int) -> None:
        """Replaces a vector by one that a rank sends."""
        with self._tensor_on_device(vector) as tensor, _raise_lost_error():
            dist.recv(tensor, source)

    def close(self) -> None:
        """Ends the process group if this transport created it."""
        if self._owns_group and dist.is_initialized():
            dist.destroy_process_group()

    @contextlib.contextmanager
    def _tensor_on_device(self, vector: Vector) -> Iterator[torch.Tensor]:
        """Yields a vector as a tensor: of the same memory on CPUs, or a copy on the GPU, which is copied back after."""
        tensor = torch.from_numpy(vector)
        if self._device.type == "cpu":
            yield tensor
            return
        device_tensor = tensor.to(self._device)
        yield device_tensor
        tensor.copy_(device_tensor)


@contextlib.contextmanager
def _raise_lost_error() -> Iterator[None]:
    """Turns errors of PyTorch inside of a block into a `LostError`."""
    try:
        yield
    except RuntimeError as error:
        # A message of gloo begins with a file name and line in brackets, and its further lines are advice.
        message = re.sub(r"^\[\S*?\] ", "", str(error).splitlines()[0])
        raise LostError(message.split(". This is typically")[0]) from error


def _connected_store(place: Place, timeout: float) -> Any:
    """Returns PyTorch's key-value store by which ranks find each other, after all ranks have joined it.

    Raises:
        LostError: if some do not come in time; the message names them.
    """
    if not place.address:
        raise DistributedError("MASTER_ADDR is not set, so the machine of rank 0 is unknown: set it to its address")
    if place.is_local and "GLOO_SOCKET_IFNAME" not in os.environ:
        # Without this variable gloo uses the address of the machine's host name, which may not resolve.
        os.environ["GLOO_SOCKET_IFNAME"] = "lo0" if sys.platform == "darwin" else "lo"
    time_limit = timedelta(seconds=timeout)
    try:
        # If an agent of torchrun has created the store, rank 0 only connects with it too.
        has_agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        is_server = place.rank == 0 and not has_agent
        store: Any = c10d.TCPStore(place.address, place.port, None, is_server, time_limit, wait_for_workers=False)
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        if "EADDRINUSE" in reason:
            raise LostError(
                f"port {place.port} of this machine is taken; set MASTER_PORT to a free one on all ranks"
            ) from error
        raise LostError(
            f"rank 0 does not answer at {place.address}:{place.port} within {timeout:g} s: {reason}"
        ) from error
    key_prefix = f"emberharmony/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    store = c10d.PrefixStore(key_prefix, store)
    store.set(f"joined/{place.rank}", "1")
    joined_keys, deadline = [f"joined/{rank}" for rank in range(place.size)], time.monotonic() + timeout
    while not store.check(joined_keys):
        if time.monotonic() > deadline:
            absent_ranks = [rank for rank, name in enumerate(joined_keys) if not store.check([name])]
            raise LostError(f"ranks {absent_ranks} have not joined within {timeout:g} s")
        time.sleep(0.02)
    return store


def connect(place: Place, option: str, timeout: float) -> Transport:
    """Connects a transport over gloo, or over the backend of PyTorch that the option names.

    Raises:
        DistributedError: if this PyTorch lacks it.
    """
    is_available_by_backend = {"gloo": dist.is_gloo_available, "nccl": dist.is_nccl_available}
    if option not in is_available_by_backend or not is_available_by_backend[option]():
        raise DistributedError(f"the transport 'torch:{option}' is not available in PyTorch {torch.__version__}")
    return TorchTransport(place, option, timeout)
