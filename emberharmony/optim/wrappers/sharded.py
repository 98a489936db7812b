"""`Sharded`, a wrapper of an optimizer whose state is divided among the ranks."""

from collections.abc import Mapping
from typing import Any

from emberharmony import Parameter, ops
from emberharmony.core.errors import ArgumentTypeError
from emberharmony.core.state.commits import Step
from emberharmony.distributed import broadcast, rank, size
from emberharmony.distributed.objects import share
from emberharmony.optim.groups import State
from emberharmony.optim.optimizer import Optimizer
from emberharmony.optim.stepping import StepPlan
from emberharmony.optim.wrappers.wrapper import Wrapper


class Sharded(Wrapper):
    """Divides each step of an optimizer: a rank updates its share of the parameters and sends them to the others.

    Each rank keeps the state of its own parameters only, which is the part 1 / ranks of the whole (ZeRO, stage 1). The
    gradients must be equal on all ranks, as `nn.DataParallel` makes them. All ranks call `step` and `state_dict`
    together. `state_dict` collects the whole state on every rank: it is that of the optimizer itself, so a run with
    another number of ranks, or one process, can continue from it. The pure form works as without this wrapper.

    Args:
        optimizer: an optimizer with a rule, such as `AdamW`.

    Raises:
        ArgumentTypeError: if the optimizer is not one with a rule.

    Example:
        >>> from emberharmony import nn, ops, optim
        >>> layer = nn.Linear(2, 1)
        >>> optimizer = optim.Sharded(optim.AdamW(layer))
        >>> loss = ops.backward(lambda: ops.sum(layer(ops.ones((1, 2)))), layer)
        >>> optimizer.step()
        >>> sorted(optimizer.state_dict()["state"])
        [0, 1]

    Source: S. Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, 2020.
    """

    optimizer: Optimizer

    def __init__(self, optimizer: Optimizer) -> None:
        super().__init__(optimizer)
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError(
                f"{self._head}expected an optimizer itself, not {type(optimizer).__name__}; wrap the Sharded one"
            )

    def owner_by_parameter(self) -> dict[Parameter, int]:
        """Returns the rank that owns each parameter: from the largest on, the rank that has the fewest elements."""
        cells = self.parameters()
        element_counts = [ops.size(cell.value) for cell in cells]
        elements_by_rank, owner_by_cell = [0] * size(), {}
        for i in sorted(range(len(cells)), key=lambda i: (-element_counts[i], i)):
            owner_rank = min(range(len(elements_by_rank)), key=lambda each: (elements_by_rank[each], each))
            elements_by_rank[owner_rank] += element_counts[i]
            owner_by_cell[cells[i]] = owner_rank
        return {cell: owner_by_cell[cell] for cell in cells}

    def plan(self, gradients: Mapping[Parameter, Any], *, clear: bool = True) -> StepPlan:
        """Returns the plan of a step in which each rank updates the parameters that it owns and gets the others.

        Raises:
            DistributedError: if a rank is missing.
        """
        owner_by_parameter, own_rank = self.owner_by_parameter(), rank()
        own_gradient_by_cell = {cell: x for cell, x in gradients.items() if owner_by_parameter[cell] == own_rank}
        plan = self.optimizer.plan(own_gradient_by_cell, clear=clear)
        for owner in range(size()):
            cells = [cell for cell in gradients if owner_by_parameter[cell] == owner]
            if not cells:
                continue
            new_values = broadcast([plan.values.get(cell, cell.value) for cell in cells], owner)
            if owner != own_rank:
                plan.values.update(zip(cells, new_values, strict=True))
                plan.tensors += new_values
                plan.steps += [cell.replace_step(value) for cell, value in zip(cells, new_values, strict=True)]
        return plan

    def first_wrapper_entries(self, leaves: list[Any]) -> State:
        """Returns no entries, because the wrapper adds nothing to the state of the pure form."""
        return {}

    def step_results(self, grads: Any, state: State, params: Any) -> tuple[Any, State, State]:
        """Returns the results of the wrapped optimizer, and no entries of the wrapper."""
        new_params, inner_state = self.optimizer.update(grads, state["optimizer"], params)
        return new_params, inner_state, {}

    def state_dict(self, *, host: bool = False) -> dict[str, Any]:
        """Returns the states of all ranks together as the state dict of the optimizer; all ranks must call it.

        Args:
            host: whether the tensors become NumPy arrays; see `Optimizer.state_dict`.

        Raises:
            DistributedError: if a rank is missing.
        """
        optimizer_state, entry_by_index, owners = (
            self.optimizer.state_dict(),
            {},
            list(self.owner_by_parameter().values()),
        )
        for owner in range(size()):
            entries_of_owner = {i: entry for i, entry in optimizer_state["state"].items() if owners[i] == owner}
            entry_by_index.update(_share_entries(owner, entries_of_owner))
        host_state = {
            i: {name: ops.to_numpy(x) if host and hasattr(x, "shape") else x for name, x in entry_by_index[i].items()}
            for i in sorted(entry_by_index)
        }
        return {**optimizer_state, "state": host_state}

    def loading_steps(self, state_dict: Mapping[str, Any]) -> list[Step]:
        """Returns the assignments that `load_state_dict` makes: each rank stores the states of its own parameters."""
        owner_by_parameter, own_rank = self.owner_by_parameter(), rank()
        removals = [(self.state.pop, cell, None) for cell, owner in owner_by_parameter.items() if owner != own_rank]
        return [*self.optimizer.loading_steps(state_dict), *removals]


def _share_entries(owner: int, entries: dict[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Sends the entries of the optimizer's state from one rank to all, and returns them there."""
    described_rows = [
        [i, name, list(x.shape) if hasattr(x, "shape") else None, ops.dtype(x).name if hasattr(x, "shape") else x]
        for i, entry in entries.items()
        for name, x in entry.items()
    ]
    entry_rows = share(described_rows, owner)
    indices_and_names = [(i, name) for i, name, shape, _ in entry_rows if shape is not None]
    is_owner = rank() == owner
    sent_tensors = [
        entries[i][name] if is_owner else ops.empty(shape, dtype)
        for i, name, shape, dtype in entry_rows
        if shape is not None
    ]
    tensor_by_index_and_name = (
        dict(zip(indices_and_names, broadcast(sent_tensors, owner), strict=True)) if sent_tensors else {}
    )
    entry_by_index: dict[int, dict[str, Any]] = {}
    for i, name, shape, value in entry_rows:
        entry_by_index.setdefault(i, {})[name] = value if shape is None else tensor_by_index_and_name[i, name]
    return entry_by_index
