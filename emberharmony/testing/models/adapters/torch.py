"""Models of PyTorch: `torch.nn.Module`."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from emberharmony.testing.differences.records import Host
from emberharmony.testing.models.adapter import Adapter, Hook, plain_options

_NARROW = (torch.float32, torch.float16, torch.bfloat16)
_CONTAINERS = (torch.nn.ModuleList, torch.nn.ModuleDict)
_PICKS = ("aten::embedding", "aten::index_select", "aten::index.Tensor", "aten::gather")
"""The kernels that pick elements; their results are cast to float64 instead of their arguments, which may be large."""


class Wide(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A dispatch mode of PyTorch in which kernels compute in float64; parameters keep their dtypes."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # PyTorch would import torch._dynamo, which takes 70 MB and seconds; `wide` runs nothing compiled

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs a kernel with its narrower floating arguments in float64, and casts back those that it writes to."""
        kwargs = dict(kwargs or {})
        if kwargs.get("dtype") in _NARROW:
            kwargs["dtype"] = torch.float64
        if func.is_view:
            return func(*args, **kwargs)
        if func.name() in _PICKS:
            return _map_tensors(_to_float64, func(*args, **kwargs))
        if not func._schema.is_mutable:
            return _map_tensors(
                _to_float64, func(*_map_tensors(_to_float64, args), **_map_tensors(_to_float64, kwargs))
            )
        narrow_and_wide_tensors: list[tuple[Any, Any]] = []

        def copy_to_float64(x: Any) -> Any:
            wide_copy = _to_float64(x)
            if wide_copy is not x:
                narrow_and_wide_tensors.append((x, wide_copy))
            return wide_copy

        kernel_result = func(*_map_tensors(copy_to_float64, args), **_map_tensors(copy_to_float64, kwargs))
        for narrow_tensor, wide_tensor in narrow_and_wide_tensors:
            narrow_tensor.copy_(wide_tensor)
        return next(
            (narrow_tensor for narrow_tensor, wide_tensor in narrow_and_wide_tensors if wide_tensor is kernel_result),
            kernel_result,
        )


class Mixed(TorchFunctionMode):
    """A function mode of PyTorch that casts arguments to float64 for functions that refuse two floating dtypes."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Calls a function of PyTorch, with arguments in float64 if they have several floating dtypes."""
        kwargs = kwargs or {}
        argument_dtypes = {x.dtype for x in _tensors((args, kwargs))}
        if (
            torch.float64 in argument_dtypes
            and argument_dtypes & set(_NARROW)
            and not getattr(func, "__name__", "").endswith("_")
        ):
            args, kwargs = _map_tensors(_to_float64, args), _map_tensors(_to_float64, kwargs)
        return func(*args, **kwargs)


def _run_eagerly() -> contextlib.AbstractContextManager[Any]:
    """Makes functions from `torch.compile` run without compiled code while a `with` block runs."""
    has_dynamo = "torch._dynamo" in sys.modules  # without torch._dynamo nothing is compiled
    return torch.compiler.set_stance("force_eager") if has_dynamo else contextlib.nullcontext()


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        yield from _tensors(tuple(value.values()))


def _to_float64(x: Any) -> Any:
    return x.to(torch.float64) if isinstance(x, torch.Tensor) and x.dtype in _NARROW else x


def _map_tensors(change: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)([_map_tensors(change, item) for item in value])
    if isinstance(value, dict):
        return {name: _map_tensors(change, item) for name, item in value.items()}
    return change(value)


class TorchModels(Adapter):
    """The adapter of PyTorch."""

    name = "torch"

    def version(self) -> str:
        return str(torch.__version__)

    def modules(self, model: Any) -> dict[str, Any]:
        return dict(model.named_modules())

    def own(self, module: Any) -> dict[str, Any]:
        names_and_tensors = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
        return {name: tensor.detach() for name, tensor in names_and_tensors}

    def put(self, module: Any, tensors: Mapping[str, Any]) -> None:
        parameter_by_path_and_name = dict(
            [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
        )
        for name, tensor in tensors.items():
            parameter_by_path_and_name[name].data = tensor

    def is_array(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    def host(self, array: Any) -> Host:
        tensor = array.detach().resolve_conj().resolve_neg().cpu()
        if tensor.dtype is torch.bfloat16:
            return Host(tensor.contiguous().view(torch.int16).numpy().view(np.uint16), "bfloat16")
        return Host(tensor.numpy(), str(tensor.dtype).removeprefix("torch."))

    def native(self, array: np.ndarray[Any, Any], like: Any = None) -> Any:
        tensor = torch.from_numpy(np.ascontiguousarray(array).copy())
        return tensor if like is None else tensor.to(like.device, like.dtype)

    def to_float64(self, array: Any) -> Any:
        return _to_float64(array)

    @contextlib.contextmanager
    def attach(self, model: Any, hook: Hook) -> Iterator[None]:
        hook_handles = []
        for path, module in model.named_modules():
            if not isinstance(module, _CONTAINERS):
                call_before, call_after = _forward_hooks(path, hook)
                hook_handles.append(module.register_forward_pre_hook(call_before, with_kwargs=True, prepend=False))
                hook_handles.append(module.register_forward_hook(call_after))
        try:
            with _run_eagerly():  # compiled code would include the hooks
                yield
        finally:
            for handle in hook_handles:
                handle.remove()

    @contextlib.contextmanager
    def wide(self, model: Any) -> Iterator[None]:
        dtype_before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        recurrent_modules = [] if model is None else [x for x in model.modules() if isinstance(x, torch.nn.RNNBase)]
        tensors_and_data = [
            (tensor, tensor.data) for module in recurrent_modules for tensor in module.parameters(recurse=False)
        ]
        try:
            for (
                tensor,
                data,
            ) in tensors_and_data:  # PyTorch 2.13 compares the dtypes of input and weights before its kernel
                tensor.data = _to_float64(data)
            with _run_eagerly(), Mixed(), Wide():  # type: ignore[no-untyped-call]
                yield
        finally:
            torch.set_default_dtype(dtype_before)
            for tensor, data in tensors_and_data:
                tensor.data = data

    @contextlib.contextmanager
    def keep_state(self, model: Any) -> Iterator[None]:
        buffers_and_values = [(buffer, buffer.clone()) for buffer in model.buffers()]
        try:
            yield
        finally:
            with torch.no_grad():
                for buffer, old_value in buffers_and_values:
                    buffer.copy_(old_value)

    def call(self, model: Any, args: Any, kwargs: Any) -> Any:
        with torch.no_grad():
            return model(*args, **kwargs)

    def is_floating(self, array: Any) -> bool:
        return bool(array.dtype.is_floating_point)

    def forward(self, model: Any, args: Any, kwargs: Any) -> Any:
        with torch.enable_grad():
            return model(*args, **kwargs)

    @contextlib.contextmanager
    def prepare_training(self, model: Any) -> Iterator[None]:
        tensors_and_data = [(tensor, tensor.data) for tensor in (*model.parameters(), *model.buffers())]
        try:
            for tensor, data in tensors_and_data:
                tensor.data = _to_float64(data)
            yield
        finally:
            for tensor, data in tensors_and_data:
                tensor.data = data

    def differentiate(
        self, model: Any, loss: Callable[[Sequence[Any]], Any], arrays: Sequence[Any]
    ) -> tuple[list[Any], dict[tuple[str, str], Any]]:
        parameter_by_path_and_name = {
            (path, name): parameter
            for path, module in self.modules(model).items()
            if isinstance(module, torch.nn.Module)
            for name, parameter in module.named_parameters(recurse=False)
            if parameter.requires_grad
        }
        probes = [array.requires_grad_() for array in arrays]
        with torch.enable_grad():
            loss_value = loss(probes)
            if not loss_value.requires_grad:
                return [None] * len(probes), {}
            gradients = torch.autograd.grad(
                loss_value, [*probes, *parameter_by_path_and_name.values()], allow_unused=True
            )
        parameters_and_gradients = zip(parameter_by_path_and_name.items(), gradients[len(probes) :], strict=True)
        return list(gradients[: len(probes)]), {
            key: torch.zeros_like(parameter) if grad is None else grad
            for (key, parameter), grad in parameters_and_gradients
        }

    def options(self, module: Any) -> dict[str, Any]:
        value_by_name = {name: value for name, value in vars(module).items() if not name.startswith("_")}
        return plain_options(value_by_name)

    def is_container(self, module: Any) -> bool:
        return isinstance(module, (*_CONTAINERS, torch.nn.Sequential))


def _forward_hooks(path: str, hook: Hook) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def call_before(_: Any, args: Any, kwargs: Any) -> Any:
        return hook.enter(path, args, kwargs)

    def call_after(_: Any, __: Any, result: Any) -> Any:
        return hook.exit(path, result)

    return call_before, call_after
