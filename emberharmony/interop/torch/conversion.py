"""`from_torch`, which converts a module of PyTorch to a module of this library."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from emberharmony import Buffer
from emberharmony.core.errors import BackendUnavailableError
from emberharmony.interop.torch.captured import Captured
from emberharmony.interop.torch.running import Modes

if TYPE_CHECKING:
    import torch


def from_torch(
    module: "torch.nn.Module",
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic: Any = None,
    train: bool | None = None,
) -> Captured:
    """Converts a module of PyTorch to a module that runs and trains on every backend.

    `torch.export` follows the module with example arguments; nothing of it is changed. Training and evaluation are two
    programs: that of the mode in which the module is comes first, the other when it is first used.

    Args:
        module: the module; its values are copied.
        args: example arguments: a tuple, or one tensor.
        kwargs: arguments of the call by name; None if there are none.
        dynamic: which axes may have another length, as `dynamic_shapes` of `torch.export.export`: by the name of each
            argument None or the axes, as `{"x": {0: torch.export.Dim.DYNAMIC}}`. True lets the first axis of all
            tensors vary.
        train: whether to capture it in training or in evaluation; None leaves it in its mode.

    Raises:
        ArgumentTypeError: if `module` is none of PyTorch.
        BackendUnavailableError: if PyTorch is not installed.
        CaptureError: if PyTorch cannot follow the module; the message has the line and the way out.
        UnsupportedOpError: if the table lacks an operator; `emberharmony.register_aten` adds it.

    Example:
        >>> import emberharmony, torch
        >>> from emberharmony import ops
        >>> net = emberharmony.from_torch(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()), torch.ones(1, 3))
        >>> [name for name, _ in net.named_parameters()], tuple(net(ops.ones((1, 3))).shape)
        (['0.weight', '0.bias'], (1, 2))
    """
    try:
        from emberharmony.interop.torch.capture.source import Source
    except ImportError as error:
        raise BackendUnavailableError("from_torch() needs PyTorch: pip install torch") from error

    source = Source(module, args, kwargs, dynamic)
    is_training = source.module.training if train is None else train
    graph, constants = source.capture(is_training)
    cell_by_name = {name: Buffer(value, persistent=False) for name, value in constants.items()}
    modes = Modes({"train" if is_training else "eval": graph}, source)
    return Captured(type(module).__name__, source.members(graph), cell_by_name, modes, is_training)
