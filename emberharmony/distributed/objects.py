"""Exchanges values that JSON can write, such as texts and numbers, between all ranks."""

import json
from typing import Any

import numpy as np

from emberharmony.distributed.transports.transport import Transport, Vector
from emberharmony.distributed.world import world


def gather(value: Any) -> list[Any]:
    """Returns the values of all ranks in a list, on all ranks; JSON must be able to write them.

    Example:
        >>> from emberharmony.distributed.objects import gathered
        >>> gathered({"step": 3})
        [{'step': 3}]
    """
    encoded_value = _json_vector(value)

    def exchange(transport: Transport) -> list[Any]:
        lengths = (
            transport.all_gather(np.asarray([len(encoded_value)], np.int64).view(np.uint8)).view(np.int64).reshape(-1)
        )
        padded_bytes = np.zeros(int(lengths.max()), np.uint8)
        padded_bytes[: len(encoded_value)] = encoded_value
        rows = transport.all_gather(padded_bytes)
        return [json.loads(row[:length].tobytes()) for row, length in zip(rows, lengths, strict=True)]

    return world().run("gathered", exchange)


def share(value: Any, root: int = 0) -> Any:
    """Returns the value of one rank, which JSON can write, on all ranks."""
    own_world = world()
    encoded_value = _json_vector(value) if own_world.rank == root else np.zeros(0, np.uint8)

    def exchange(transport: Transport) -> Any:
        byte_count = np.asarray([len(encoded_value)], np.int64)
        transport.broadcast(byte_count.view(np.uint8), root)
        sent_bytes = encoded_value.copy() if own_world.rank == root else np.zeros(int(byte_count[0]), np.uint8)
        transport.broadcast(sent_bytes, root)
        return json.loads(sent_bytes.tobytes())

    return own_world.run("shared", exchange)


def _json_vector(value: Any) -> Vector:
    return np.frombuffer(json.dumps(value).encode(), np.uint8)
