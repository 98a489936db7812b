"""Converts functions of trees to functions of lists of tensors, which backends differentiate, batch and compile."""

import operator
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

from emberharmony.core import selection
from emberharmony.core.cells.cell import Cell
from emberharmony.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    EmberError,
    ShapeError,
    TracedTensorError,
    UnsupportedOpError,
    brief,
    has_message,
)
from emberharmony.core.tracing import TensorProxy
from emberharmony.core.trees.tree import LEAF, TreeDef, tree_flatten, tree_unflatten

Function = Callable[..., Any]
_NUMBERS = (bool, int, float, complex)
_INEXACT = frozenset(("float", "complex"))
_PROXY = r"(Traced|Abstract)Tensor|emberharmony\.(Parameter|Buffer)"
"""The classes of traced tensors and cells, which a library names in its error if it refuses one."""
_NO_DERIVATIVE = r"(derivative|vjp|jvp).*not (yet )?implemented"


def flatten(tree: Any) -> tuple[list[Any], TreeDef]:
    """Returns the leaves and the structure of a tree, in which a list of numbers, nested or not, is one leaf."""
    return tree_flatten(tree, _is_number_list)


def fill_leaf(leaf: Any, tensor: Any) -> Any:
    """Returns a tensor for the place of a leaf in the arguments of a function: in a cell if the leaf is a cell."""
    return leaf.copy_holding(tensor) if isinstance(leaf, Cell) else tensor


def _is_constant(leaf: Any, arguments: Sequence[Any]) -> bool:
    """Returns whether a leaf of the arguments is a cell that is not trained, and not itself an argument."""
    return isinstance(leaf, Cell) and not leaf.trainable and all(leaf is not argument for argument in arguments)


def _is_number_list(tree: Any) -> bool:
    if not isinstance(tree, list):
        return False
    return bool(tree) and all(isinstance(item, _NUMBERS) or _is_number_list(item) for item in tree)


def refusal_message(error: BaseException) -> str:
    """Returns the message for the error by which a library refuses a traced tensor."""
    library_reason = str(error).partition(". The")[0]
    return (
        f"the library refuses a traced tensor or a parameter ({library_reason}): call the function of ops in place of "
        f"the library's, also for an operator whose left operand is a native tensor, as ops.matmul(a, x) for a @ x"
    )


class ResultTree:
    """The tree that a user's function returned, kept while a backend works on the list of its tensors.

    Args:
        op: the name of the transform, for messages.
        has_aux: whether the function returns (result, aux).
    """

    built = built_aux = LEAF
    width = 0
    aux_leaves: Sequence[Any] = ()
    aux_places: Sequence[int] = ()

    def __init__(self, op: str, has_aux: bool = False) -> None:
        self.op, self.backend, self.has_aux = op, selection.active().backend, has_aux

    @property
    def head(self) -> str:
        """The beginning of an error message: the op and the backend."""
        return f"{self.op}() on backend {self.backend.name!r}: "

    def tensors(self, returned_value: Any) -> list[Any]:
        """Returns the tensors of the result, then those of the aux, and records the structure of both."""
        if not self.has_aux and (
            returned_value.__class__ is self.backend.tensor_type or self.is_tensor(returned_value)
        ):
            self.built, self.width = LEAF, 1
            return [returned_value]
        result, aux = self._require_pair(returned_value) if self.has_aux else (returned_value, None)
        return self._result_tensors(result) + self._aux_tensors(aux)

    def tensor(self, value: Any, what: str, dtype: Any = None) -> Any:
        """Returns a number, list or tensor as a tensor of the backend.

        Args:
            what: what the value is, for the message.

        Raises:
            EmberError: if it cannot be converted; the error has the type of the conversion's error.
        """
        try:
            if isinstance(value, Cell):
                value = value.tensor_on(self.backend.bound)
            if dtype is None:
                return value if self.is_tensor(value) else self.backend.convert(value)
            return self.backend.bound.convert_to_tensor(value, dtype)
        except EmberError as error:
            error_class = type(error)
            raise error_class(f"{self.head}{what} cannot be converted to a tensor: {error}") from error

    def is_tensor(self, value: Any) -> bool:
        """Returns whether a value is a tensor of the backend, or a proxy for one."""
        return isinstance(value, TensorProxy) or self.backend.is_tensor(value)

    def is_inexact(self, tensor: Any) -> bool:
        """Returns whether a tensor is floating or complex."""
        return self.backend.kind_of(tensor) in _INEXACT

    def are_inexact(self, tensors: Sequence[Any]) -> bool:
        """Returns whether all of several tensors are floating or complex."""
        kinds = self.backend.kinds
        # torch.compile traces no `map` of an `attrgetter`, and a generator would be a frame for each tensor.
        for tensor in tensors:  # noqa: SIM110
            if kinds[tensor.dtype] not in _INEXACT:
                return False
        return True

    def run(self, transform: Function, *arguments: Any) -> Any:
        """Returns the result of a backend's transform; errors of the user's function pass unchanged.

        Raises:
            TracedTensorError: if the function passes a traced tensor to a function or operator of the library.
            UnsupportedOpError: if the library has no derivative for an op that the function calls.
        """
        try:
            return transform(*arguments)
        except Exception as error:
            if isinstance(error, EmberError):
                raise
            if has_message(error, (TypeError, ValueError), _PROXY):
                raise TracedTensorError(f"{self.head}{refusal_message(error)}") from error
            if not has_message(error, (RuntimeError, ValueError), _NO_DERIVATIVE):
                raise
            first_line = str(error).strip().partition("\n")[0]
            raise UnsupportedOpError(
                f"{self.head}the library has no derivative for an op that was called: {first_line}"
            ) from error

    def _require_pair(self, result: Any) -> tuple[Any, Any]:
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise ArgumentTypeError(
                f"{self.head}with has_aux=True the function must return a pair (result, aux), not "
                f"{type(result).__name__}"
            )
        return result[0], result[1]

    def _result_tensors(self, result: Any) -> list[Any]:
        leaves, self.built = flatten(result)
        self.width = len(leaves)
        tensor_type = self.backend.tensor_type
        return [
            leaf
            if leaf.__class__ is tensor_type or isinstance(leaf, TensorProxy)
            else self.tensor(leaf, "the function's result")
            for leaf in leaves
        ]

    def _aux_tensors(self, aux: Any) -> list[Any]:
        leaves, self.built_aux = tree_flatten(aux)
        self.aux_leaves = [leaf.tensor_on(self.backend.bound) if isinstance(leaf, Cell) else leaf for leaf in leaves]
        self.aux_places = [i for i, leaf in enumerate(self.aux_leaves) if self.is_tensor(leaf)]
        return [self.aux_leaves[i] for i in self.aux_places]

    def result(self, outputs: Sequence[Any]) -> Any:
        """Returns the function's result, rebuilt from the tensors in `outputs`."""
        if self.built is LEAF:
            return outputs[0]
        return tree_unflatten(self.built, outputs[: self.width])

    def aux(self, outputs: Sequence[Any]) -> Any:
        """Returns the function's aux, rebuilt from the tensors in `outputs`; other leaves are unchanged."""
        leaves = list(self.aux_leaves)
        for i, value in zip(self.aux_places, outputs[self.width :], strict=True):
            leaves[i] = value
        return tree_unflatten(self.built_aux, leaves)

    def require_scalar(self, outputs: Sequence[Any]) -> None:
        """Checks that the result is a loss: one real floating scalar.

        Raises:
            ArgumentTypeError: if it is a tree, other than an object that stands for one tensor.
            ShapeError: if it is not a scalar.
            DTypeError: if it is not real and floating.
        """
        if self.built is not LEAF and (self.built.kind, self.built.leaves) != ("registered", 1):
            advice = "return (loss, aux) with has_aux=True, or use vjp or jacobian"
            if self.head.startswith("backward("):
                advice = "return the loss alone, and keep other values in a list or an attribute"
            raise ArgumentTypeError(f"{self.head}the function returns a {self.built.kind}, not a scalar; {advice}")
        result_shape = tuple(outputs[0].shape)
        if result_shape:
            raise ShapeError(
                f"{self.head}the function returns shape {result_shape}, not a scalar; reduce it (ops.sum, ops.mean), "
                f"or use vjp or jacobian"
            )
        if self.backend.kinds[outputs[0].dtype] != "float":
            dtype_name = self.backend.dtype_of(outputs[0]).name
            raise DTypeError(f"{self.head}the function returns {dtype_name}, but a loss must be real and floating")

    def matching_leaves(self, tree: Any, structure: TreeDef, tensors: Sequence[Any], what: str) -> list[Any]:
        """Returns the leaves of a tree as tensors with the dtypes of `tensors`, or None where these are integers.

        Raises:
            ArgumentError: if the structures differ.
            ShapeError: if the shapes differ.
            DTypeError: if the dtypes differ.
        """
        leaves, tree_structure = flatten(tree)
        if tree_structure != structure:
            raise ArgumentError(f"{self.head}the {what}s must form the same tree as the tensors that they belong to")
        return [self.match_leaf(leaf, tensor, what) for leaf, tensor in zip(leaves, tensors, strict=True)]

    def match_leaf(self, leaf: Any, tensor: Any, what: str) -> Any:
        """Returns a leaf as a tensor with the shape and dtype of `tensor`, or None if that is an integer.

        Raises:
            ShapeError: if the shapes differ.
            DTypeError: if the dtypes differ.
        """
        if not self.is_inexact(tensor):
            return None
        if isinstance(leaf, Cell):
            leaf = leaf.tensor_on(self.backend.bound)
        if not self.is_tensor(leaf):
            leaf = self.tensor(leaf, f"a {what}", tensor.dtype)
        if tuple(leaf.shape) != tuple(tensor.shape):
            raise ShapeError(f"{self.head}a {what} has shape {tuple(leaf.shape)}, expected {tuple(tensor.shape)}")
        if leaf.dtype != tensor.dtype:
            leaf_dtype, expected_dtype = self.backend.dtype_of(leaf).name, self.backend.dtype_of(tensor).name
            raise DTypeError(f"{self.head}a {what} has dtype {leaf_dtype}, expected {expected_dtype}; use ops.cast")
        return leaf


class Argnums:
    """Which positional arguments a transform differentiates; it is made once for all calls of a function.

    Args:
        given: an integer or a sequence of integers.

    Attributes:
        alone: whether it is no sequence.
        places: the positions if they are valid for all calls with more than `last` arguments, else empty.
        last: the largest position, or more than a call can have if the positions depend on the call.
    """

    def __init__(self, given: int | Sequence[int]) -> None:
        self.given = given
        self.alone = not isinstance(given, Sequence)
        # A list may change between two calls, and a negative position depends on the number of arguments.
        positions = given if isinstance(given, tuple) else (given,) if type(given) is int else ()
        is_valid = (
            all(type(number) is int and number >= 0 for number in positions)
            and len(set(positions)) == len(positions) > 0
        )
        self.places: tuple[int, ...] = positions if is_valid else ()
        self.last = max(self.places, default=sys.maxsize)

    def as_list(self) -> list[Any]:
        """Returns the positions as a list, in the order in which they were given."""
        return [self.given] if self.alone else [*self.given]  # type: ignore[misc]


class FlatFunction(ResultTree):
    """A function of trees in the form of a function of tensors.

    It takes tensors in place of `primals`, and returns the tensors of the function's result, then those of its aux. A
    buffer or frozen parameter inside of an argument, as in a module, is constant: None stands in its place in results.

    Args:
        op: the name of the transform, for messages.
        fn: the function of `args` and `kwargs`; with `has_aux` it returns (result, aux).
        argnums: the arguments whose leaves become `primals`.

    Raises:
        ArgumentTypeError: if `argnums` are not integers.
        ArgumentError: if `argnums` are out of range or repeated, or all that they choose is constant.
        DTypeError: if an argument to differentiate is an integer.
    """

    constants: Collection[int] = ()
    """The positions of the leaves that are constant."""

    def __init__(
        self,
        op: str,
        fn: Function,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        argnums: Argnums,
        has_aux: bool = False,
    ) -> None:
        super().__init__(op, has_aux)
        self.fn, self.args, self.kwargs, self.alone = fn, args, kwargs, argnums.alone
        self.positions = argnums.places if argnums.last < len(args) else self._positions(argnums.as_list())
        chosen_arguments, tensor_type = [args[position] for position in self.positions], self.backend.tensor_type
        # Whether each argument is a tensor and no tree of tensors, so that its gradient needs no tree either.
        self.bare = True
        for x in chosen_arguments:
            if x.__class__ is not tensor_type:
                self.bare = False
        self.leaves: Sequence[Any] = chosen_arguments
        if not self.bare:
            self.leaves, self._structure = flatten(tuple(chosen_arguments))
        # Whether each leaf is a tensor that can be differentiated, so that none has to be looked at.
        self.plain = {*map(type, self.leaves)} == {tensor_type} and self.are_inexact(self.leaves)
        if self.plain:
            self.primals = list(self.leaves)
            return
        if not self.bare:
            self.constants = {i for i, leaf in enumerate(self.leaves) if _is_constant(leaf, chosen_arguments)}
            if self.constants and len(self.constants) == len(self.leaves):
                raise ArgumentError(
                    f"{self.head}there is no trainable Parameter in the arguments to differentiate; unfreeze one, or "
                    f"pass the tensor of a cell, or the cell itself, as an argument"
                )
        self.primals = [self._primal(leaf) for i, leaf in enumerate(self.leaves) if i not in self.constants]

    @property
    def structure(self) -> TreeDef:
        """The structure of the tuple of the arguments to differentiate."""
        return TreeDef("tuple", tuple, (LEAF,) * len(self.leaves), len(self.leaves)) if self.bare else self._structure

    def __call__(self, *leaves: Any) -> list[Any]:
        """Calls the function with these leaves, and returns the tensors of its result and aux."""
        new_args = list(self.args)
        if self.bare:
            argument_values: Sequence[Any] = leaves
        elif self.plain:
            argument_values = tree_unflatten(self.structure, leaves)
        else:
            tensors = self._with_constants(
                leaves, [self.leaves[i].tensor_on(self.backend.bound) for i in sorted(self.constants)]
            )
            new_leaves = [fill_leaf(leaf, tensor) for leaf, tensor in zip(self.leaves, tensors, strict=True)]
            argument_values = tree_unflatten(self.structure, new_leaves)
        for position, value in zip(self.positions, argument_values, strict=True):
            new_args[position] = value
        return self.tensors(self.fn(*new_args, **self.kwargs))

    def loss(self, *leaves: Any) -> list[Any]:
        """Returns the same as a call, but requires that the result is a loss."""
        outputs = self(*leaves)
        self.require_scalar(outputs)
        return outputs

    def _positions(self, argnums: list[Any]) -> Sequence[int]:
        argument_count = len(self.args)
        try:
            positions = [operator.index(given_position) for given_position in argnums]
        except TypeError as error:
            raise ArgumentTypeError(
                f"{self.head}argnums must be an integer or a sequence of integers, not {brief(argnums)}"
            ) from error
        if (
            positions
            and 0 <= min(positions)
            and max(positions) < argument_count
            and len(set(positions)) == len(positions)
        ):
            return positions
        for position in positions:
            if not -argument_count <= position < argument_count:
                raise ArgumentError(
                    f"{self.head}argnums {position} is out of range: {argument_count} positional arguments were given "
                    f"(an argument to differentiate must be passed by position)"
                )
        nonnegative_positions = [given_position % argument_count for given_position in positions]
        if len(set(nonnegative_positions)) != len(nonnegative_positions):
            raise ArgumentError(f"{self.head}argnums {argnums} name an argument twice")
        return nonnegative_positions

    def _primal(self, leaf: Any) -> Any:
        if not self.is_tensor(leaf) and (isinstance(leaf, (str, bytes)) or callable(leaf)):
            raise DTypeError(
                f"{self.head}an argument to differentiate holds {brief(leaf)}, which is no tensor; leave it out, or "
                f"make it a static field of a dataclass: annotate the field as str or Callable, or give it "
                f"metadata={{'static': True}}"
            )
        tensor = leaf if self.is_tensor(leaf) else self.tensor(leaf, "an argument to differentiate")
        if not self.is_inexact(tensor):
            raise DTypeError(
                f"{self.head}an argument to differentiate has dtype {self.backend.dtype_of(tensor).name}, which has no "
                f"derivative; cast it to a floating dtype (ops.cast), or leave it out of argnums"
            )
        return tensor

    def unflatten_primals(self, leaves: Sequence[Any]) -> Any:
        """Returns tensors in the structure of the primals: a tree for one argnum, a tuple of trees for a sequence."""
        trees = tuple(leaves) if self.bare else self._argument_trees(leaves)
        return trees[0] if self.alone else trees

    def tangents(self, trees: Sequence[Any]) -> list[Any]:
        """Returns the tangents of the primals; the trees may have tensors or None in the places of constants.

        Raises:
            ArgumentError: if the structures differ.
            ShapeError: if the shapes differ.
            DTypeError: if the dtypes differ.
        """
        leaves, tangent_structure = flatten(tuple(trees))
        if self.constants and tangent_structure == self.structure:
            trees = self._argument_trees([leaf for i, leaf in enumerate(leaves) if i not in self.constants])
        structure = flatten(self._argument_trees(self.primals))[1] if self.constants else self.structure
        return self.matching_leaves(tuple(trees), structure, self.primals, "tangent")

    def _argument_trees(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """Returns the arguments to differentiate with these leaves, and None in the places of constants."""
        trees: tuple[Any, ...] = tree_unflatten(
            self.structure, self._with_constants(leaves, [None] * len(self.constants))
        )
        return trees

    def _with_constants(self, leaves: Sequence[Any], constants: Sequence[Any]) -> Sequence[Any]:
        """Returns the leaves with the constants in their places."""
        if not self.constants:
            return leaves
        next_leaves, remaining_constants = iter(leaves), iter(constants)
        return [next(remaining_constants if i in self.constants else next_leaves) for i in range(len(self.leaves))]


def require_callable(op: str, fn: Any) -> None:
    """Checks that `fn` can be called.

    Raises:
        ArgumentTypeError: if it cannot.
    """
    if not callable(fn):
        advice = "write lambda, with the arguments, in front of what is to be computed, as in lambda x: ops.sum(x)"
        if op == "backward":
            advice = "write lambda: in front of the loss: ops.backward(lambda: loss_fn(model(x), y), model)"
        raise ArgumentTypeError(f"{op}() takes a function, not {type(fn).__name__}; {advice}")
