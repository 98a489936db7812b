"""What optimizers ask a backend, beside ops: to compute the steps of many parameters at once, or over their memory."""

import contextlib
import itertools
import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

from emberharmony.core.named_tuple import Record

if TYPE_CHECKING:
    from emberharmony.transforms.program import Update

_LOOKS, _DEVICE = attrgetter("__class__", "shape", "dtype"), attrgetter("device")


class Traits(Record):
    """Facts about lists of tensors, which hold for all lists of tensors of the same shapes, dtypes and devices.

    Attributes:
        match: takes as many tensors, and returns whether each has the class, the shape, the dtype and the device of the
            one in its place, so that whatever was found out about that is true of it.
        fit_programs: whether `run_update` and `overwriting_calls` take them.
        fit_kernels: whether the kernels of the library for lists of tensors take them.
    """

    match: Callable[..., bool]
    fit_programs: bool = True
    fit_kernels: bool = False


class Steps:
    """The part of a backend that computes the steps of optimizers."""

    bound: Any
    may_outlive_transforms: Any
    runs_programs: Any = True
    """Whether `run_update` and `apply_rule` may stand for many ops; False while watchers want the calls of each."""
    joinable: ClassVar[int] = 2**13
    """The most elements of a tensor for which `as_vector` and `split_vector` take less time than a few calls of ops."""

    def traits_of(self, columns: Sequence[Sequence[Any]]) -> Traits:
        """Returns the facts about lists of tensors; later steps of an optimizer only ask whether their tensors match.

        Programs take one dtype.
        """

        def looks_of(tensors: Sequence[Any]) -> list[Any]:
            all_looks = list(map(_LOOKS, tensors))
            return [*all_looks, *map(_DEVICE, tensors)] if hasattr(tensors[0], "device") else all_looks

        tensors = list(itertools.chain.from_iterable(columns))
        tensor_looks = looks_of(tensors)
        # A program computes in the dtype to which its inputs are promoted; a rule keeps the dtype of each tensor.
        return Traits(lambda *others: looks_of(others) == tensor_looks, len({tensor.dtype for tensor in tensors}) == 1)

    def may_all_outlive_transforms(self, tensors: Sequence[Any]) -> bool:
        """Returns whether parameters may keep all these tensors as they are; if False, the caller checks each one."""
        return all(map(self.may_outlive_transforms, tensors))

    def evaluate(self, tensors: list[Any]) -> None:
        """Computes tensors, if the library computes them only when it is asked to."""
        self.bound.eval(tensors)

    def as_vector(self, tensors: Sequence[Any]) -> Any:
        """Returns all elements of tensors of one dtype and device as one vector, perhaps in their memory."""
        return self.bound.concatenate([self.bound.reshape(tensor, -1) for tensor in tensors])

    def split_vector(self, vector: Any, likes: Sequence[Any]) -> list[Any]:
        """Returns the elements of a vector as tensors of the shapes of others, each with memory of its own."""
        end_offsets = list(itertools.accumulate(math.prod(like.shape) for like in likes))
        bounds_and_shapes = zip([0, *end_offsets], end_offsets, likes, strict=False)
        return [
            self.bound.copy(self.bound.reshape(self.bound.get_item(vector, slice(start, end)), tuple(like.shape)))
            for start, end, like in bounds_and_shapes
        ]

    def has_kernel(self, update: "Update", like: Any) -> bool:
        """Returns whether the library computes an optimizer's update of many tensors like this one by one call."""
        return False

    def run_update(self, update: "Update", columns: Sequence[Sequence[Any]]) -> list[Sequence[Any]] | None:
        """Returns the lists of tensors that an optimizer's program of elementwise ops computes from lists of tensors.

        Args:
            update: the program and its numbers.
            columns: a list of tensors for each input; tensors at the same place have the same shape, and `traits_of`
                has said that programs take them.

        Returns:
            A list of new tensors for each output, or None if the ops have to be called.
        """
        return None

    def apply_rule(self, rule: Callable[..., Any], *arguments: Any) -> Any:
        """Returns `rule(*arguments)`, the step of an optimizer that works element by element; see `runs_programs`."""
        return rule(*arguments)

    def can_overwrite(self, update: "Update") -> bool:
        """Returns whether `overwriting_calls` can write the results of a program over its inputs."""
        return False

    def overwriting_calls(self, update: "Update", columns: Sequence[Sequence[Any]], kept: dict[Any, Any]) -> Any:
        """Returns the calls of C functions that write the results of a program over its inputs.

        The first output takes the place of the second input, the next one that of the third, and so on. The results
        are those of `run_update`.

        Args:
            update: the program and its numbers.
            columns: the inputs; see `run_update`. `owns` has said yes of all but the first.
            kept: what the backend may keep for the next step over tensors like these.

        Returns:
            None if the program has to be computed.
        """
        return None

    def owns_memory(self, tensors: Sequence[Any]) -> bool:
        """Returns whether the library has made the memory of these tensors, and nothing else refers to it.

        References to the tensors themselves do not count.
        """
        return False

    def writing_scope(self) -> contextlib.AbstractContextManager[Any]:
        """Returns the context manager in which the calls of `overwriting_calls` are made."""
        return contextlib.nullcontext()
