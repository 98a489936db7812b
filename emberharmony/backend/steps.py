"""What optimizers ask a backend, beside ops: to compute the steps of many parameters at once, or over their memory."""

import contextlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from emberharmony.backend.shared.programs import Program, Written


class Steps:
    """The part of a backend that computes the steps of optimizers."""

    bound: Any
    joinable: ClassVar[int] = 2**13
    """The most elements of a tensor for which `joined` and `parted` take less time than a few calls of ops."""
    listed: ClassVar[int] = 0
    """The most steps of a program that `evaluated` computes faster from lists of small tensors than from a vector."""
    blocked: ClassVar[int] = 0
    """The fewest elements of a tensor that `evaluated` computes faster than the ops; 0 if it computes nothing."""
    overwrites: ClassVar[bool] = False
    """Whether `overwriting` can write the results of a program over its inputs."""

    @property
    def runs_programs(self) -> bool:
        """Whether `evaluated` and `applied` may stand for many ops; False while watchers want the calls of each."""
        return True

    def joined(self, tensors: Sequence[Any]) -> Any:
        """Returns all elements of tensors of one dtype and device as one vector, perhaps in their memory."""
        return self.bound.concatenate([self.bound.ravel(tensor) for tensor in tensors])

    def parted(self, vector: Any, likes: Sequence[Any]) -> list[Any]:
        """Returns the elements of a vector as tensors of the shapes of others, each with memory of its own."""
        ends = list(itertools.accumulate(math.prod(like.shape) for like in likes))
        parts = zip([0, *ends], ends, likes, strict=False)
        return [
            self.bound.copy(self.bound.reshape(self.bound.get_item(vector, slice(start, end)), tuple(like.shape)))
            for start, end, like in parts
        ]

    def evaluated(
        self, program: "Program", columns: Sequence[Sequence[Any]], large: bool
    ) -> list[Sequence[Any]] | None:
        """Returns what a program of elementwise ops computes from lists of tensors, with the bits of the ops.

        Args:
            program: the program.
            columns: a list of tensors for each input; tensors at the same place have the same shape, and all have the
                same floating dtype.
            large: whether the tensors are so large that blocks of them should be computed one after the other.

        Returns:
            A list of new tensors for each output, or None if the ops have to be called.
        """
        return None

    def computes_together(self, program: "Program", like: Any) -> bool:
        """Returns whether `evaluated` computes large and small tensors like this one in the same way."""
        return False

    def applied(self, rule: Callable[..., Any], *arguments: Any) -> Any:
        """Returns `rule(*arguments)`, the step of an optimizer that works element by element; see `runs_programs`."""
        return rule(*arguments)

    def adam(
        self, gradient: Any, parameter: Any, averages: Sequence[Any], step: int, hyper: Mapping[str, Any]
    ) -> list[Any] | None:
        """Returns a parameter and its averages after a step of Adam, computed in one go.

        Args:
            gradient: the gradient.
            parameter: the parameter.
            averages: the averages of the gradients and of their squares, with `amsgrad` also the largest of these.
            step: the count of steps with this one.
            hyper: the options of `emberharmony.optim.Adam`.

        Returns:
            New tensors, or None if the ops have to be called.
        """
        return None

    def likeness(self, tensors: Sequence[Any], seen: bool) -> Callable[..., bool] | None:
        """Returns a function that says whether as many tensors are like these, each like the one at its place.

        Tensors are alike that have the same class, shape, dtype and device, and of which nothing is recorded that is
        not recorded of the other.

        Args:
            tensors: gradients, and as many parameters.
            seen: whether somebody has kept a parameter from before a step.

        Returns:
            A function with the tensors as its arguments; None if it would take as long as a look at each.
        """
        return None

    def owns(self, tensors: Sequence[Any], alike: Any) -> bool:
        """Returns whether the library has made the memory of these tensors, and nothing else refers to it.

        References to the tensors themselves do not count.

        Args:
            tensors: parameters, and the tensors of their states.
            alike: a function of `likeness` for the parameters, or None.
        """
        return False

    def overwriting(
        self, program: "Program", columns: Sequence[Sequence[Any]], large: bool, alike: Any
    ) -> "Written | None":
        """Returns what writes the results of a program over its inputs, with the bits that `evaluated` computes.

        The first output takes the place of the second input, the next one that of the third, and so on.

        Args:
            program: the program.
            columns: the inputs; see `evaluated`.
            large: as for `evaluated`.
            alike: the function of `likeness` that has just said of the first two columns that they are as before, or
                None if there is none.

        Returns:
            None if the program has to be evaluated.
        """
        return None

    def writing(self) -> contextlib.AbstractContextManager[Any]:
        """Returns the context manager in which the calls of `overwriting` are made."""
        return contextlib.nullcontext()
