"""`DataParallel`, a module that several ranks train together, each with its part of the batch."""

from collections.abc import Iterator, Mapping
from typing import Any

from emberharmony import Buffer, Parameter, ops
from emberharmony.core.errors import ArgumentTypeError, brief
from emberharmony.core.state.commits import Step, commit
from emberharmony.distributed import all_mean, broadcast, size, wire
from emberharmony.nn.module import Module


class DataParallel(Module):
    """A module whose copies on all ranks stay equal, while each rank computes with its part of the batch.

    The constructor gives the parameters and buffers of rank 0 to all ranks. After the backward pass `synchronize`
    averages the gradients, so the step of the optimizer is the same on all ranks: that of one process with the whole
    batch, if the loss is a mean and the parts have one length. `nn.fit` calls it. Names and state dicts are those of
    the module itself.

    Args:
        module: the module; it has the same parameters on all ranks.
        deterministic: whether gradients are added in the order of the ranks, which gives the same bits everywhere.
        bucket_bytes: how many bytes are carried in one piece.

    Raises:
        ArgumentTypeError: if `module` is not a module.
        DistributedError: if a rank is missing.

    Example:
        >>> net = nn.DataParallel(nn.Linear(2, 1))
        >>> optimizer = optim.SGD(net, lr=0.1)
        >>> loss = ops.backward(lambda: ops.mean(ops.square(net(ops.ones((4, 2))))), net)
        >>> loss = net.synchronize(loss)
        >>> optimizer.step()
    """

    def __init__(self, module: Module, *, deterministic: bool = False, bucket_bytes: int = wire.BUCKET) -> None:
        if not isinstance(module, Module):
            raise ArgumentTypeError(f"DataParallel() takes a module, not {brief(module)}")
        self.module = module
        self.deterministic, self.bucket_bytes = deterministic, bucket_bytes
        self._share_from_rank_0([*module.parameters(), *module.buffers()])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def synchronize(self, loss: Any = None) -> Any:
        """Averages the gradients of all ranks, gives the buffers of rank 0 to all, and returns the mean loss.

        All ranks call it, once for each step of the optimizer: after the last of several backward passes. A parameter
        without a gradient on some ranks counts as zero there.

        Args:
            loss: a tensor to average, or None.

        Raises:
            DistributedError: if a rank is missing.
        """
        if size() == 1:
            return loss
        cells = self.module.parameters(trainable=True)
        own_gradients = [cell.grad for cell in cells]
        gradients = [
            ops.zeros_like(cell.value) if x is None else x for cell, x in zip(cells, own_gradients, strict=True)
        ]
        has_gradient = ops.array([0.0 if x is None else 1.0 for x in own_gradients], "float32")
        values_to_average = [gradients, has_gradient, ops.convert_to_tensor(0.0, "float32") if loss is None else loss]
        mean_gradients, gradient_shares, mean_loss = all_mean(
            values_to_average, deterministic=self.deterministic, bucket_bytes=self.bucket_bytes
        )
        has_gradient_anywhere = [x is not None for x in own_gradients]
        if not all(has_gradient_anywhere):
            # Which gradients other ranks have matters only if one is missing here; reading it waits for the collective.
            has_gradient_anywhere = ops.to_numpy(ops.greater(gradient_shares, 0.0)).tolist()
        for cell, x, has_mean in zip(cells, mean_gradients, has_gradient_anywhere, strict=True):
            cell.grad = x if has_mean else None
        self._share_from_rank_0(self.module.buffers())
        return None if loss is None else mean_loss

    def _share_from_rank_0(self, cells: list[Any]) -> None:
        """Copies the values of parameters or buffers from rank 0 to all ranks."""
        if cells:
            rank_0_values = broadcast([cell.value for cell in cells])
            steps: list[Step] = [cell.replace_step(value) for cell, value in zip(cells, rank_0_values, strict=True)]
            commit(steps)

    def named_parameters(self, trainable: bool | None = None) -> Iterator[tuple[str, Parameter]]:
        yield from self.module.named_parameters(trainable)

    def named_buffers(self) -> Iterator[tuple[str, Buffer]]:
        yield from self.module.named_buffers()

    def state_dict(self, **options: Any) -> dict[str, Any]:
        return self.module.state_dict(**options)

    def load_state_dict(self, values: Mapping[str, Any], **options: Any) -> Any:
        return self.module.load_state_dict(values, **options)

    def loading_steps(self, values: Mapping[str, Any]) -> list[Step]:
        return self.module.loading_steps(values)
