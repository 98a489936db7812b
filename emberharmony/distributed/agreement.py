"""The check of `ops.checked` that all ranks make the same call with tensors of the same shapes and dtypes."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from emberharmony.core.errors import DistributedError
from emberharmony.distributed.transports.transport import Transport
from emberharmony.distributed.world import World


def require_agreement(world: World, call: str, options: dict[str, Any], leaves: Sequence[tuple[str, Any, str]]) -> None:
    """Checks that all ranks have made the same collective call with the same options, shapes and dtypes.

    Args:
        world: the ranks.
        call: the name of the collective.
        options: what else must be equal.
        leaves: the name, the shape and the dtype of each tensor.

    Raises:
        DistributedError: on all ranks, if one differs; the message names the ranks and what they gave.
    """
    call_lines = [call, *(f"{name}={value!r}" for name, value in sorted(options.items()))]
    call_lines += [f"{name or 'the tensor'}: shape {tuple(shape)}, {dtype}" for name, shape, dtype in leaves]

    def lines_if_different(transport: Transport) -> list[list[str]] | None:
        encoded_lines = json.dumps(call_lines).encode()
        digest_bytes = np.frombuffer(
            hashlib.sha256(encoded_lines).digest() + len(encoded_lines).to_bytes(8, "little"), np.uint8
        ).copy()
        digests = transport.all_gather(digest_bytes)
        if (digests == digest_bytes).all():
            return None
        lengths = [int.from_bytes(row[-8:].tobytes(), "little") for row in digests]
        padded_bytes = np.zeros(max(lengths), np.uint8)
        padded_bytes[: len(encoded_lines)] = np.frombuffer(encoded_lines, np.uint8)
        bytes_of_each_rank = transport.all_gather(padded_bytes)
        return [json.loads(row[:length].tobytes()) for row, length in zip(bytes_of_each_rank, lengths, strict=True)]

    lines_of_ranks = world.run(call, lines_if_different)
    if lines_of_ranks is not None:
        raise _disagreement_error(world, lines_of_ranks)


def _disagreement_error(world: World, lines_of_ranks: list[list[str]]) -> DistributedError:
    """Returns the error for ranks that have made different calls."""
    count_by_lines = Counter(map(tuple, lines_of_ranks))
    # If several calls are equally frequent, that of the lowest rank counts as the usual one.
    usual_lines = max(count_by_lines, key=lambda each: (count_by_lines[each], -lines_of_ranks.index(list(each))))
    rank_texts = []
    differing_ranks = [rank for rank, lines in enumerate(lines_of_ranks) if tuple(lines) != usual_lines]
    for rank in differing_ranks:
        lines = lines_of_ranks[rank]
        if lines[0] != usual_lines[0]:
            rank_texts.append(f"rank {rank} calls {lines[0]}(), the others {usual_lines[0]}()")
            continue
        unusual_lines = [line for line in lines[1:] if line not in usual_lines] or ["nothing else"]
        missing_lines = [line for line in usual_lines[1:] if line not in lines] or ["nothing there"]
        rank_texts.append(
            f"rank {rank} gives {'; '.join(unusual_lines[:3])} (the others: {'; '.join(missing_lines[:3])})"
        )
    return DistributedError(f"{world.call}: the ranks differ: {'. '.join(rank_texts)}", world.call, differing_ranks)
