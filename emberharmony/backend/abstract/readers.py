"""Composites that read values, although their shapes do not depend on them: random numbers, quantiles, and others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from emberharmony.backend.abstract.rules import Rule, call_with_one_element, reduced_shape, resized_shape
from emberharmony.backend.promote import nonnegative_axes
from emberharmony.backend.shared.arrays.shape import as_shape, require_matrices
from emberharmony.backend.shared.arrays.writing import broadcasts_into, check_mode, convert_like, misfit_error
from emberharmony.backend.shared.random import checked_seed
from emberharmony.backend.shared.random_parameters import check_fits_shape, element_count
from emberharmony.backend.shared.random_state import State
from emberharmony.backend.shared.random_streams import read_streams
from emberharmony.backend.shared.solver import require_square
from emberharmony.core.errors import ArgumentError, DTypeError, UnsupportedOpError, brief
from emberharmony.core.options import as_integer
from emberharmony.core.registry import OPS
from emberharmony.core.selection import Override
from emberharmony.core.state.draws import Aside
from emberharmony.core.trees.tree import tree_leaves
from emberharmony.transforms.abstract_tensor import AbstractTensor, NoValueError, no_value_error

if TYPE_CHECKING:
    from emberharmony.backend.abstract import AbstractBackend


def _call_composite(backend: AbstractBackend, name: str, *args: Any) -> Any:
    """Returns the result of a composite of the wrapped backend on single elements; random streams stay unchanged."""
    with Aside(), Override(backend.wrapped):
        return call_with_one_element(backend, name, *args)


def _random_numbers(backend: AbstractBackend, name: str, shape: Any, *parameters: Any) -> AbstractTensor:
    """Returns random numbers of a shape; parameters that are tensors or lists must broadcast to it."""
    lengths = as_shape(shape)
    arguments = list(parameters)
    for i, parameter in enumerate(parameters):
        if isinstance(parameter, (list, tuple, np.ndarray)) or backend.is_tensor(parameter):
            arguments[i] = backend.convert(parameter)
            check_fits_shape(OPS[name].parameters[i + 1].name, arguments[i].shape, lengths)
    if name == "random_randint" and any(isinstance(bound, AbstractTensor) for bound in arguments[:2]):
        arguments[:2] = 0, 1
    sample_result = _call_composite(backend, name, (1,) * len(lengths), *arguments)
    return backend.tensor_of(lengths, sample_result.dtype)


def _quantile(
    backend: AbstractBackend,
    name: str,
    x: AbstractTensor,
    q: Any,
    axis: Any = None,
    method: str = "linear",
    keepdims: bool = False,
) -> AbstractTensor:
    quantile_shape = q.shape if isinstance(q, AbstractTensor) else np.shape(q)
    sample_result = _call_composite(backend, name, x, q, axis, method, keepdims)
    return backend.tensor_of((*quantile_shape, *reduced_shape(x.shape, axis, keepdims)), sample_result.dtype)


def _frequencies_rule(halved: bool) -> Rule:
    def frequencies(backend: AbstractBackend, name: str, n: int, *options: Any) -> AbstractTensor:
        sample_result = _call_composite(backend, name, 1, *options)
        (length,) = as_shape(n)
        if length < 1:
            raise ArgumentError(f"expected a transform of length 1 or more, got {brief(n)}")
        return backend.tensor_of((length // 2 + 1 if halved else length,), sample_result.dtype)

    return Rule(frequencies)


class AbstractReaders:
    """Overrides composites whose bodies read values or compute on the host."""

    random_normal, random_uniform, random_randint, random_bernoulli = (Rule(_random_numbers) for _ in range(4))
    random_poisson, random_binomial, random_exponential, random_gamma = (Rule(_random_numbers) for _ in range(4))
    random_beta, random_gumbel, random_laplace, random_truncated_normal = (Rule(_random_numbers) for _ in range(4))
    quantile, nanquantile, percentile, nanpercentile = (Rule(_quantile) for _ in range(4))
    fftfreq, rfftfreq = _frequencies_rule(halved=False), _frequencies_rule(halved=True)

    tensor_of: Any
    wrapped: Any
    composed: Callable[[str], Callable[..., Any]]
    convert: Any
    dtype_of: Any
    dtypes: Any
    get_item: Any
    kind_of: Any

    @staticmethod
    def random_seed(seed: Any) -> None:
        checked_seed(seed)

    def random_get_state(self) -> State:
        with Aside():
            state: State = self.wrapped.bound.random_get_state()
            return state

    def random_set_state(self, state: Any) -> None:
        read_streams(self.wrapped.name, state)

    def random_permutation(self, x: Any, axis: int = 0, seed: Any = None, generator: Any = None) -> AbstractTensor:
        length = element_count(x)
        if length is None:
            return self.random_shuffle(self.convert(x), axis, seed, generator)
        return self.tensor_of((length,), self.dtypes["int64"])

    @staticmethod
    def random_shuffle(x: AbstractTensor, axis: int = 0, seed: Any = None, generator: Any = None) -> AbstractTensor:
        nonnegative_axes(axis, x.ndim)
        return x

    def random_choice(
        self, a: Any, shape: Any = (), replace: bool = True, p: Any = None, seed: Any = None, generator: Any = None
    ) -> AbstractTensor:
        lengths, length = as_shape(shape), element_count(a)
        if length is None:
            candidates = self.convert(a)
            nonnegative_axes(0, candidates.ndim)
            length, item_shape, dtype = candidates.shape[0], candidates.shape[1:], candidates.dtype
        else:
            item_shape, dtype = (), self.dtypes["int64"]
        if p is not None:
            check_fits_shape("p", self.convert(p).shape, (length,))
        draw_count = int(np.prod(lengths, dtype=object))
        if draw_count and (not length or (not replace and draw_count > length)):
            raise ArgumentError(f"expected at least {1 if replace else draw_count} integers or slices, got {length}")
        return self.tensor_of((*lengths, *item_shape), dtype)

    @Rule
    def nanmedian(self: Any, name: str, x: AbstractTensor, axis: Any = None, keepdims: bool = False) -> AbstractTensor:
        sample_result = _call_composite(self, name, x, axis, keepdims)
        return self.tensor_of(reduced_shape(x.shape, axis, keepdims), sample_result.dtype)

    def unique(
        self,
        x: AbstractTensor,
        sorted: bool = True,
        return_index: bool = False,
        return_inverse: bool = False,
        return_counts: bool = False,
        axis: int | None = None,
        size: int | None = None,
        fill_value: float | None = None,
    ) -> Any:
        if size is None:
            raise no_value_error("the length of the result is the number of different elements; pass size")
        unique_count, index_dtype = as_integer("size", size, 0), self.dtypes["int64"]
        axis_index = 0 if axis is None else nonnegative_axes(axis, x.ndim)[0]
        unique_values = self.tensor_of(
            (unique_count,) if axis is None else resized_shape(x.shape, axis_index, unique_count), x.dtype
        )
        inverse_indices = self.tensor_of(x.shape if axis is None else (x.shape[axis_index],), index_dtype)
        index_vector = self.tensor_of((unique_count,), index_dtype)
        flags_and_results = (
            (return_index, index_vector),
            (return_inverse, inverse_indices),
            (return_counts, index_vector),
        )
        other_results = [result for is_requested, result in flags_and_results if is_requested]
        return (unique_values, *other_results) if other_results else unique_values

    @Rule
    def expm(self: Any, name: str, x: AbstractTensor) -> AbstractTensor:
        return self.tensor_of(require_square(x).shape, _call_composite(self, name, x).dtype)

    @Rule
    def lu(self: Any, name: str, x: AbstractTensor) -> Any:
        *batch_shape, row_count, column_count = require_matrices(x).shape
        inner_length = min(row_count, column_count)
        shapes = (
            (*batch_shape, row_count, row_count),
            (*batch_shape, row_count, inner_length),
            (*batch_shape, inner_length, column_count),
        )
        sample_result = _call_composite(self, name, x)
        return type(sample_result)(*(self.tensor_of(s, y.dtype) for s, y in zip(shapes, sample_result, strict=True)))

    @Rule
    def ctc_decode(
        self: Any, name: str, inputs: AbstractTensor, sequence_lengths: AbstractTensor, *options: Any
    ) -> Any:
        strategy, beam_width, top_paths, merge_repeated, mask_index = (*options, *_CTC_DEFAULTS[len(options) :])
        # The greedy search reads no values, and checks the shapes and the class that stands for "no label".
        shape_strategy = "greedy" if strategy == "beam_search" else strategy
        labels, scores = self.composed(name)(
            inputs, sequence_lengths, shape_strategy, beam_width, top_paths, merge_repeated, mask_index
        )
        if strategy != "beam_search":
            return labels, scores
        if not 1 <= top_paths <= beam_width:
            raise ArgumentError(f"expected top_paths from 1 to beam_width={beam_width}, got {top_paths}")
        batch_size, step_count = inputs.shape[:2]
        return self.tensor_of((top_paths, batch_size, step_count), labels.dtype), self.tensor_of(
            (batch_size, top_paths), scores.dtype
        )

    def set_item(self, x: AbstractTensor, key: Any, value: Any, mode: str = "set") -> AbstractTensor:
        check_mode(mode)
        new_value = convert_like(self, value, x)
        if mode in ("min", "max") and self.kind_of(x) == "complex":
            raise DTypeError(
                f"mode {mode!r} is not defined for {self.dtype_of(x).name}; cast the tensor first (ops.cast)"
            )
        try:
            full_shape = self.get_item(x, key).shape
        except NoValueError:  # how many elements a mask selects is not known here, so that `new` is not checked
            return x
        if not broadcasts_into(new_value.shape, full_shape):
            raise misfit_error(new_value.shape, full_shape)
        return x

    def host_call(self, fn: Callable[..., Any], *args: Any, vjp: Callable[..., Any] | None = None) -> Any:
        for leaf in tree_leaves(args):
            if isinstance(leaf, AbstractTensor) and leaf.known is None:
                raise no_value_error(
                    f"host_call() gives the values of its arguments to {getattr(fn, '__name__', brief(fn))}"
                )
        return self.composed("host_call")(fn, *args, vjp=vjp)

    @staticmethod
    def backward(loss_fn: Callable[[], Any], params: Any) -> Any:
        raise UnsupportedOpError(
            "backward() stores gradients in parameters, but eval_shape computes shapes only: use ops.value_and_grad "
            "inside of eval_shape"
        )


_CTC_DEFAULTS: Sequence[Any] = ("greedy", 100, 1, True, 0)
"""The defaults of the options of `ctc_decode`, in the declared order."""
