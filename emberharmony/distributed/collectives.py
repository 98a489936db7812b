"""The collectives over trees of tensors, with gradients."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.core import selection
from emberharmony.core.cells.cell import Cell
from emberharmony.core.cells.moves import HostBits
from emberharmony.core.dtypes import DType
from emberharmony.core.errors import ArgumentError, DTypeError, ShapeError, brief
from emberharmony.core.state.checked_mode import checking
from emberharmony.distributed import wire
from emberharmony.distributed.agreement import require_agreement
from emberharmony.distributed.transports.transport import Transport, Vector
from emberharmony.distributed.world import World, world

Tensors = Sequence[Any]
Hosts = list[HostBits]
_INEXACT = ("float", "complex")


def all_sum(tree: Any, *, deterministic: bool = False, bucket_bytes: int = wire.BUCKET) -> Any:
    """Returns the sum of the trees of all ranks, on all ranks.

    Tensors of 16 bits are added in float32 and rounded once. The gradient is the `all_sum` of the cotangents: the loss
    that is differentiated is the sum of the losses of all ranks.

    Args:
        tree: tensors, of the same shapes and dtypes on all ranks.
        deterministic: whether the terms are added in the order of the ranks, so that the bits are the same on every
            transport and in every run.
        bucket_bytes: how many bytes are carried in one piece.

    Raises:
        DTypeError: if a tensor is boolean.
        DistributedError: if a rank is missing; in checked mode also if ranks give other shapes or dtypes.

    Example:
        >>> ops.distributed.all_sum({"count": ops.array([1, 2])})["count"].tolist()
        [1, 2]
    """
    options = {"deterministic": deterministic, "bucket_bytes": bucket_bytes}
    return _sum_over_ranks("all_sum", tree, 1, options)


def all_mean(tree: Any, *, deterministic: bool = False, bucket_bytes: int = wire.BUCKET) -> Any:
    """Returns the mean of the trees of all ranks, on all ranks; see `all_sum`.

    Args:
        tree: floating or complex tensors, of the same shapes and dtypes on all ranks.
        deterministic: whether the terms are added in the order of the ranks, so that the bits are the same on every
            transport and in every run.
        bucket_bytes: how many bytes are carried in one piece.

    Raises:
        DTypeError: if a tensor is not floating or complex.
        DistributedError: if a rank is missing; in checked mode also if ranks give other shapes or dtypes.

    Example:
        >>> ops.distributed.all_mean([ops.array([1.0, 2.0])])[0].tolist()
        [1.0, 2.0]
    """
    options = {"deterministic": deterministic, "bucket_bytes": bucket_bytes}
    return _sum_over_ranks("all_mean", tree, world().size, options)


def all_gather(tree: Any) -> Any:
    """Returns the tensors of all ranks, joined along their first axis in the order of the ranks.

    A tensor without axes becomes a vector with one element for each rank. The gradient is the `reduce_scatter` of the
    cotangents.

    Args:
        tree: tensors, of the same shapes and dtypes on all ranks.

    Raises:
        DistributedError: if a rank is missing; in checked mode also if ranks give other shapes or dtypes.

    Example:
        >>> ops.distributed.all_gather(ops.array([[1.0, 2.0]])).tolist()
        [[1.0, 2.0]]
    """
    own_world = world()

    def exchange(transport: Transport, host_tensors: Hosts) -> Hosts:
        gathered_rows = wire.apply_by_buckets(
            [_as_bytes(bits) for bits, _ in host_tensors], wire.BUCKET, transport.all_gather, (own_world.size,)
        )
        return [
            HostBits(row.view(bits.dtype).reshape((own_world.size * (bits.shape or (1,))[0], *bits.shape[1:])), dtype)
            for row, (bits, dtype) in zip(gathered_rows, host_tensors, strict=True)
        ]

    def pull_back(primals: Tensors, cotangents: Tensors) -> list[Any]:
        gradients = reduce_scatter(list(cotangents))
        return [ops.reshape(gradient, tuple(x.shape)) for gradient, x in zip(gradients, primals, strict=True)]

    return _run_collective(own_world, "all_gather", tree, {}, exchange, pull_back)


def reduce_scatter(tree: Any) -> Any:
    """Returns a part of the sum of the trees of all ranks: rank r gets the r-th part of the first axis.

    The terms are added in the order of the ranks. The gradient is the `all_gather` of the cotangents.

    Args:
        tree: tensors whose first axis divides by the number of ranks, of the same shapes and dtypes on all ranks.

    Raises:
        DTypeError: if a tensor is boolean.
        ShapeError: if the first axis does not divide by the number of ranks.
        DistributedError: if a rank is missing; in checked mode also if ranks give other shapes or dtypes.

    Example:
        >>> ops.distributed.reduce_scatter(ops.array([1.0, 2.0])).tolist()
        [1.0, 2.0]
    """
    own_world = world()

    def exchange(transport: Transport, host_tensors: Hosts) -> Hosts:
        def exchange_and_sum(rows: Vector) -> Vector:
            sum_of_rows: Vector = wire.pairwise_sum(list(transport.all_to_all(rows.view(np.uint8)).view(rows.dtype)))
            return sum_of_rows

        def rows_of(tensor: HostBits) -> Vector:
            padded_vector = wire.vector_to_sum(tensor)
            return padded_vector.reshape(own_world.size, padded_vector.size // own_world.size)

        sums = wire.sum_by_dtype("reduce_scatter", host_tensors, rows_of, wire.BUCKET, exchange_and_sum)
        chunk_shapes = [(x.bits.shape[0] // own_world.size, *x.bits.shape[1:]) for x in host_tensors]
        return [
            wire.tensor_of_sums(sum_vector, x.dtype, chunk_shape)
            for sum_vector, x, chunk_shape in zip(sums, host_tensors, chunk_shapes, strict=True)
        ]

    def pull_back(primals: Tensors, cotangents: Tensors) -> list[Any]:
        gradients: list[Any] = all_gather(list(cotangents))
        return gradients

    def require_divisible(shape: tuple[int, ...], dtype: DType) -> None:
        wire.summation_dtype("reduce_scatter", dtype.name)
        if not shape or shape[0] % own_world.size:
            raise ShapeError(
                f"reduce_scatter(): a tensor has shape {shape}, expected a first axis that divides by the "
                f"{own_world.size} ranks"
            )

    return _run_collective(own_world, "reduce_scatter", tree, {}, exchange, pull_back, require_divisible)


def broadcast(tree: Any, root: int = 0) -> Any:
    """Returns the tree of one rank, on all ranks.

    The gradient of the tree of that rank is the sum of the cotangents of all ranks, and that of the others is zero.

    Args:
        tree: tensors, of the same shapes and dtypes on all ranks.
        root: the rank whose tree all ranks get.

    Raises:
        ArgumentError: if there is no such rank.
        DistributedError: if a rank is missing; in checked mode also if ranks give other shapes, dtypes or roots.

    Example:
        >>> ops.distributed.broadcast(ops.array([1.0, 2.0])).tolist()
        [1.0, 2.0]
    """
    own_world = world()
    _require_rank("broadcast", own_world, root)

    def exchange(transport: Transport, host_tensors: Hosts) -> Hosts:
        def broadcast_bucket(vector: Vector) -> Vector:
            transport.broadcast(vector, root)
            return vector

        received_vectors = wire.apply_by_buckets(
            [_as_bytes(bits) for bits, _ in host_tensors], wire.BUCKET, broadcast_bucket
        )
        return [
            _host_tensor_like(vector, tensor) for vector, tensor in zip(received_vectors, host_tensors, strict=True)
        ]

    def pull_back(primals: Tensors, cotangents: Tensors) -> list[Any]:
        sum_of_cotangents = all_sum(list(cotangents))
        return [x if own_world.rank == root else ops.zeros_like(x) for x in sum_of_cotangents]

    return _run_collective(own_world, "broadcast", tree, {"root": root}, exchange, pull_back)


def send(tree: Any, to: int) -> Any:
    """Sends a tree to a rank, which calls `recv`, and returns the tree.

    For a gradient the loss must use the result: its derivative waits for the cotangents, which the derivative of
    `recv` sends back.

    Args:
        tree: a tree of tensors.
        to: the rank that receives it.

    Raises:
        ArgumentError: if there is no such rank, or it is this one.
        DistributedError: if the rank is missing.
    """
    own_world = world()
    _require_rank("send", own_world, to, other=True)

    def exchange(transport: Transport, host_tensors: Hosts) -> Hosts:
        def send_bucket(vector: Vector) -> Vector:
            transport.send(vector, to)
            return vector

        wire.apply_by_buckets([_as_bytes(bits) for bits, _ in host_tensors], wire.BUCKET, send_bucket)
        return host_tensors

    def pull_back(primals: Tensors, cotangents: Tensors) -> list[Any]:
        received_tensors = recv(list(cotangents), to)
        return [ops.add(x, y) for x, y in zip(cotangents, received_tensors, strict=True)]

    return _run_collective(own_world, "send", tree, {}, exchange, pull_back, peer=to)


def recv(like: Any, source: int) -> Any:
    """Returns the tree that a rank sends.

    For a gradient `like` holds traced tensors: their gradients are zero, and the cotangents are sent back.

    Args:
        like: a tree of tensors that have the shapes and dtypes of those that come, or of `TensorSpec`.
        source: the rank that sends the tree.

    Raises:
        ArgumentError: if there is no such rank, or it is this one.
        DistributedError: if the rank is missing.
    """
    own_world = world()
    _require_rank("recv", own_world, source, other=True)

    def exchange(transport: Transport, host_tensors: Hosts) -> Hosts:
        def receive_bucket(vector: Vector) -> Vector:
            transport.recv(vector, source)
            return vector

        received_vectors = wire.apply_by_buckets(
            [_as_bytes(bits) for bits, _ in host_tensors], wire.BUCKET, receive_bucket
        )
        return [
            _host_tensor_like(vector, tensor) for vector, tensor in zip(received_vectors, host_tensors, strict=True)
        ]

    def pull_back(primals: Tensors, cotangents: Tensors) -> list[Any]:
        send(list(cotangents), source)
        return [ops.zeros_like(x) for x in primals]

    templates = ops.tree_map(lambda x: ops.empty(x.shape, x.dtype) if isinstance(x, ops.TensorSpec) else x, like)
    return _run_collective(own_world, "recv", templates, {}, exchange, pull_back, peer=source)


def barrier() -> None:
    """Waits until all ranks have called `barrier`.

    Raises:
        DistributedError: if a rank does not come in time.

    Example:
        >>> ops.distributed.barrier()
    """
    own_world = world()
    if checking():
        require_agreement(own_world, "barrier", {}, [])
    own_world.run("barrier", lambda transport: transport.all_gather(np.zeros(1, np.uint8)))


def _sum_over_ranks(call: str, tree: Any, divisor: int, options: dict[str, Any]) -> Any:
    """Returns the sum of the trees of all ranks divided by a number, on all ranks."""
    own_world, bucket_bytes = world(), options["bucket_bytes"]
    if not bucket_bytes > 0:
        raise ArgumentError(f"{call}(): bucket_bytes is {brief(bucket_bytes)}, expected a number above 0")

    def exchange(transport: Transport, host_tensors: Hosts) -> Hosts:
        def sum_bucket(vector: Vector) -> Vector:
            if options["deterministic"]:
                wire.sum_in_rank_order(transport, vector)
            else:
                transport.all_sum(vector)
            if divisor > 1:
                np.divide(vector, divisor, out=vector)
            return vector

        sums = wire.sum_by_dtype(call, host_tensors, wire.vector_to_sum, bucket_bytes, sum_bucket)
        return [
            wire.tensor_of_sums(sum_vector, x.dtype, x.bits.shape)
            for sum_vector, x in zip(sums, host_tensors, strict=True)
        ]

    def pull_back(primals: Tensors, cotangents: Tensors) -> list[Any]:
        gradients: list[Any] = _sum_over_ranks(call, list(cotangents), divisor, options)
        return gradients

    def require_summable(shape: tuple[int, ...], dtype: DType) -> None:
        wire.summation_dtype(call, dtype.name)
        if call == "all_mean" and dtype.kind not in _INEXACT:
            raise DTypeError(f"{call}(): a tensor has dtype {dtype}, expected a floating or complex one")

    return _run_collective(own_world, call, tree, options, exchange, pull_back, require_summable)


def _run_collective(
    world: World,
    call: str,
    tree: Any,
    options: dict[str, Any],
    exchange: Callable[[Transport, Hosts], Hosts],
    pull_back: Callable[[Tensors, Tensors], list[Any]],
    check_operand: Callable[[tuple[int, ...], DType], None] | None = None,
    peer: int | None = None,
) -> Any:
    """Runs a collective on the tensors of a tree, with its gradient, and returns the tree of results.

    Args:
        world: the ranks.
        call: the name of the collective.
        tree: tensors.
        options: what else must be equal on all ranks.
        exchange: makes the result of tensors on the host.
        pull_back: returns the cotangents of the primals for those of the results.
        check_operand: raises an error for a shape and a dtype that the collective refuses.
        peer: the only other rank that takes part, if it is no collective; then nothing is compared.
    """
    backend = selection.current()
    bound = backend.bound
    leaves, structure = ops.tree_flatten(tree)
    operands = [x.value if isinstance(x, Cell) else ops.convert_to_tensor(x) for x in leaves]
    dtypes = [ops.dtype(x) for x in operands]
    for x, dtype in zip(operands, dtypes, strict=True):
        if check_operand is not None:
            check_operand(tuple(x.shape), dtype)
    if checking() and peer is None:
        leaf_names = [str(path) for path in ops.tree_paths(tree)]
        operand_descriptions = [
            (name, x.shape, dtype.name) for name, x, dtype in zip(leaf_names, operands, dtypes, strict=True)
        ]
        require_agreement(world, call, options, operand_descriptions)
    devices = [bound.get_device(x) for x in operands]
    outputs: list[Any] = [None] * len(operands)
    # Integers, which have no derivative, go in a message of their own, also on ranks that differentiate nothing.
    for group_positions in (
        [i for i, dtype in enumerate(dtypes) if dtype.kind not in _INEXACT],
        [i for i, dtype in enumerate(dtypes) if dtype.kind in _INEXACT],
    ):

        def forward(*tensors: Any, positions: list[int] = group_positions) -> list[Any]:
            host_tensors = [backend.pack(x) for x in tensors]
            results = world.run(call, lambda transport: exchange(transport, host_tensors), peer)
            return [backend.unpack(x, devices[i]) for i, x in zip(positions, results, strict=True)]

        if not group_positions:
            continue
        tensors = [operands[i] for i in group_positions]
        if any(backend.is_traced(x) for x in tensors):
            results = bound.custom_vjp(forward, lambda primals, cotangents: pull_back(primals, cotangents), tensors)
        else:
            results = forward(*tensors)
        for i, x in zip(group_positions, results, strict=True):
            outputs[i] = x
    return ops.tree_unflatten(structure, outputs)


def _require_rank(call: str, world: World, rank: int, other: bool = False) -> None:
    """Checks the argument of a collective that names a rank.

    Raises:
        ArgumentError: if not.
    """
    if type(rank) is not int or not 0 <= rank < world.size or (other and rank == world.rank):
        exclusion_text = f", but not {world.rank} itself" if other else ""
        raise ArgumentError(
            f"{call}(): rank {brief(rank)}, expected an integer from 0 to {world.size - 1}{exclusion_text}"
        )
    if other and not world.transport.reaches(rank):
        raise ArgumentError(
            f"{call}(): the ring of MLX sends to neighbours only, but rank {rank} is not next to rank {world.rank} of "
            f"{world.size}; use the transport 'torch' or 'mpi'"
        )


def _as_bytes(bits: Vector) -> Vector:
    return np.ascontiguousarray(bits).reshape(-1).view(np.uint8)


def _host_tensor_like(vector: Vector, tensor: HostBits) -> HostBits:
    return HostBits(vector.view(tensor.bits.dtype).reshape(tensor.bits.shape), tensor.dtype)
