"""Computes by PyTorch the outputs and gradients of a captured module, and of single calls, for comparison."""

import copy
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils import _pytree

from emberharmony.core.errors import ArgumentError
from emberharmony.interop.torch.capture.source import Source
from emberharmony.interop.torch.graph import FLOAT, LAYER, Graph
from emberharmony.transforms.program import ProgramCall, Register

Arrays = list[np.ndarray[Any, Any]]


class Expected(NamedTuple):
    """The outputs and gradients that a module of PyTorch computes.

    Attributes:
        outputs: the floating tensors among its results.
        gradients: by name of the parameter the gradient of the weighted sum of the outputs.
        dtype: the dtype in which they were computed.
    """

    outputs: Arrays
    gradients: dict[str, np.ndarray[Any, Any]]
    dtype: str

    @property
    def largest_gradient(self) -> float:
        """The largest magnitude of an element of all gradients."""
        return max((float(np.max(np.abs(g), initial=0.0)) for g in self.gradients.values()), default=0.0)


def relative_error(array: Any, expected_array: Any, least: float = 0.0) -> float:
    """Returns the largest difference of two arrays, divided by the second's largest element or by `least`."""
    if array.shape != expected_array.shape:
        return float("inf")
    is_same = np.equal(array, expected_array) | (np.isnan(array) & np.isnan(expected_array))
    with np.errstate(invalid="ignore"):
        distances = np.where(is_same, 0.0, np.abs(array.astype("float64") - expected_array))
    largest_expected = np.max(np.abs(expected_array), initial=0.0, where=np.isfinite(expected_array))
    return float(np.max(distances, initial=0.0)) / max(float(largest_expected), least, 1e-30)


def loss_weights(shapes: Sequence[tuple[int, ...]]) -> Arrays:
    """Returns random weights of the outputs, whose weighted sum is the loss for comparing gradients."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape) / max(math.prod(shape), 1) for shape in shapes]


def reference_results(source: Source, state: Mapping[str, Any], train: bool) -> Expected:
    """Computes outputs and gradients of a module for its example arguments in float64, or else in its own dtype.

    Args:
        source: the module.
        state: the values of its parameters and buffers as arrays of NumPy, by name.
        train: whether it is in training.
    """
    module = copy.deepcopy(source.module).train(train)
    module.load_state_dict({name: torch.tensor(value) for name, value in state.items()}, strict=False)
    try:
        return _compute_reference(copy.deepcopy(module), source, torch.float64)
    except (RuntimeError, TypeError):  # the model creates float32 tensors itself
        return _compute_reference(module, source, None)


def _compute_reference(module: torch.nn.Module, source: Source, dtype: torch.dtype | None) -> Expected:
    def cast(x: Any) -> Any:
        return x.to(dtype) if dtype and isinstance(x, torch.Tensor) and x.is_floating_point() else x

    args, kwargs = _pytree.tree_map(cast, (source.args, source.kwargs))
    old_dtype = torch.get_default_dtype()
    torch.set_default_dtype(dtype or old_dtype)
    try:
        module = module.to(dtype) if dtype else module
        module.zero_grad()
        result_tensors = [x for x in _pytree.tree_leaves(module(*args, **kwargs)) if isinstance(x, torch.Tensor)]
        outputs = [x for x in result_tensors if x.is_floating_point()]
        weights = loss_weights([tuple(x.shape) for x in outputs])
        terms = [(x * torch.tensor(w, dtype=x.dtype)).sum() for x, w in zip(outputs, weights, strict=True)]
        loss = sum(term for term in terms if term.requires_grad)
        if isinstance(loss, torch.Tensor):
            loss.backward()  # type: ignore[no-untyped-call]
    finally:
        torch.set_default_dtype(old_dtype)
    gradient_by_name = {
        name: np.zeros(tuple(p.shape)) if p.grad is None else p.grad.double().numpy()
        for name, p in module.named_parameters()
    }
    output_arrays = [x.detach().double().numpy() for x in outputs]
    return Expected(output_arrays, gradient_by_name, str(dtype or "float32").removeprefix("torch."))


class Step(NamedTuple):
    """A call of a graph with the arguments, results and gradients that PyTorch computes for it.

    Attributes:
        place: its place.
        args, keywords: its arguments, in which the values of tensors stand as arrays of NumPy.
        results: its results, tensors as arrays.
        gradients: by the place among the floating tensors in the arguments, the gradient of the weighted sum of the
            floating results; empty if there is none.
    """

    place: int
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    results: list[Any]
    gradients: Arrays


def run_steps(source: Source, graph: Graph, inputs: Sequence[Any]) -> Iterator[Step]:
    """Runs a graph by PyTorch in float64, and yields each call with its arguments, results and gradients.

    Args:
        source: the module.
        graph: its graph.
        inputs: the inputs of the program on the host: arrays of NumPy, and for layers their paths.
    """
    value_by_register: dict[int, Any] = {}
    for position, value in enumerate(inputs):
        tensor = torch.tensor(value) if isinstance(value, np.ndarray) else value
        is_floating = graph.dtypes[position] == FLOAT and tensor is not None
        value_by_register[position] = tensor.double() if is_floating else tensor
    value_by_register[0] = torch.float64
    for position, call in enumerate(graph.program.calls):
        function = (
            _float64_layer(source.module, value_by_register[call.args[0]])
            if call.function == LAYER
            else _function_of_call(call)
        )
        args = _fill_registers(call.args[1:] if call.function == LAYER else call.args, value_by_register)
        keywords = {key: _fill_registers(value, value_by_register) for key, value in call.keywords}
        results, gradients = _call_with_gradients(function, args, keywords)
        yield Step(position, _arrays_of_tree(args), _arrays_of_tree(keywords), _arrays_of_tree(results), gradients)
        step_results = results if call.several else results[:1]
        value_by_register.update(zip(call.results, step_results, strict=False))


def _call_with_gradients(function: Callable[..., Any], args: Any, keywords: Any) -> tuple[list[Any], Arrays]:
    leaves = [x for x in _pytree.tree_leaves((args, keywords)) if isinstance(x, torch.Tensor)]
    float_inputs = [x.requires_grad_() for x in leaves if x.is_floating_point()]
    returned_value = function(*args, **keywords)
    results = list(returned_value) if isinstance(returned_value, (tuple, list)) else [returned_value]
    outputs = [x for x in results if isinstance(x, torch.Tensor) and x.is_floating_point()]
    weights = loss_weights([tuple(x.shape) for x in outputs])
    terms = [(x * torch.tensor(w, dtype=x.dtype)).sum() for x, w in zip(outputs, weights, strict=True)]
    loss = sum(term for term in terms if term.requires_grad)
    gradients: Arrays = []
    if isinstance(loss, torch.Tensor):
        with suppress(RuntimeError):  # PyTorch lacks some derivatives, as of `scatter`
            input_gradients = torch.autograd.grad(loss, float_inputs, allow_unused=True)
            zeros = [np.zeros(tuple(x.shape)) for x in float_inputs]
            gradients = [zero if g is None else g.numpy() for zero, g in zip(zeros, input_gradients, strict=True)]
    for x in float_inputs:
        x.requires_grad_(False)
    return [x.detach() if isinstance(x, torch.Tensor) else x for x in results], gradients


def _function_of_call(call: ProgramCall) -> Callable[..., Any]:
    """Returns the function of PyTorch or Python that a call of a graph names."""
    root, *path = call.function.split(".")
    module_by_name: dict[str, Any] = {"operator": operator, "math": math, "torch": torch}
    attribute: Any = module_by_name[root] if root in module_by_name else getattr(torch.ops, root)
    for name in path:
        attribute = getattr(attribute, name, None)
    if not callable(attribute):
        raise ArgumentError(f"PyTorch has no operator {call.function}")
    function: Callable[..., Any] = attribute
    return function


def _float64_layer(module: torch.nn.Module, path: str) -> Callable[..., Any]:
    layer = copy.deepcopy(module.get_submodule(path)).double()
    for parameter in layer.parameters():
        parameter.requires_grad_(False)
    return layer


_DTYPES = {str(x).removeprefix("torch."): x for x in vars(torch).values() if isinstance(x, torch.dtype)}


def _fill_registers(value: Any, values: Mapping[int, Any]) -> Any:
    if value.__class__ is Register:
        return values[value]
    if isinstance(value, (list, tuple)):
        return type(value)([_fill_registers(item, values) for item in value])
    return _DTYPES.get(value, value) if isinstance(value, str) else value


def _arrays_of_tree(tree: Any) -> Any:
    def as_array(x: Any) -> Any:
        return x.detach().numpy() if isinstance(x, torch.Tensor) else str(x)[6:] if isinstance(x, torch.dtype) else x

    return _pytree.tree_map(as_array, tree)
