"""Values that are no tensors, such as text and numbers, on all ranks."""

import json
from typing import Any

import numpy as np

from emberharmony.distributed.transports.transport import Transport, Vector
from emberharmony.distributed.world import world


def gather(value: Any) -> list[Any]:
    """Returns the values of all ranks, each of which JSON can write.

    Example:
        >>> from emberharmony.distributed.objects import gathered
        >>> gathered({"step": 3})
        [{'step': 3}]
    """
    text = _bytes(value)

    def run(transport: Transport) -> list[Any]:
        lengths = transport.all_gather(np.asarray([len(text)], np.int64).view(np.uint8)).view(np.int64).reshape(-1)
        padded = np.zeros(int(lengths.max()), np.uint8)
        padded[: len(text)] = text
        rows = transport.all_gather(padded)
        return [json.loads(row[:length].tobytes()) for row, length in zip(rows, lengths, strict=True)]

    return world().run("gathered", run)


def share(value: Any, root: int = 0) -> Any:
    """Returns the value of one rank, which JSON can write, on all ranks."""
    ranks = world()
    text = _bytes(value) if ranks.rank == root else np.zeros(0, np.uint8)

    def run(transport: Transport) -> Any:
        length = np.asarray([len(text)], np.int64)
        transport.broadcast(length.view(np.uint8), root)
        sent_bytes = text.copy() if ranks.rank == root else np.zeros(int(length[0]), np.uint8)
        transport.broadcast(sent_bytes, root)
        return json.loads(sent_bytes.tobytes())

    return ranks.run("shared", run)


def _bytes(value: Any) -> Vector:
    return np.frombuffer(json.dumps(value).encode(), np.uint8)
