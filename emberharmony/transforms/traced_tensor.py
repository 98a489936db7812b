"""The tensor that a tape traces: it has the shape and dtype of its value, and its operators and methods are ops."""

from operator import attrgetter
from typing import Any, NoReturn

from emberharmony.core import op_globals
from emberharmony.core.errors import TracedTensorError
from emberharmony.core.stand_ins.shared_methods import ExplainedMethods, op_of_traced, outside_function_error
from emberharmony.core.tracing import TensorProxy, outside_function_message


class TracedTensor(ExplainedMethods, TensorProxy):
    """A tensor that stands for `value` while a tape records.

    `node` is the node that computed it, None for an argument of the function. `key` is that of its gradient: the number
    of the node or, if the node has several results, the pair of the number and the index. The methods are those that
    the tensors of NumPy, PyTorch and MLX share, with the parameters on which they agree. Other uses raise
    `TracedTensorError`.
    """

    __slots__ = ("key", "node", "tape", "value")
    kind, plain = "a traced tensor", "ops.stop_gradient(x)"

    def __init__(self, value: Any, tape: Any, node: Any, key: Any) -> None:
        self.value, self.tape, self.node, self.key = value, tape, node, key

    # These properties read attributes of the tape and the value by `attrgetter`, without a frame of Python.
    run: Any = property(attrgetter("tape.run"), doc="Runs an op on the tape of the innermost traced argument.")
    backend: Any = property(attrgetter("tape.backend"), doc="The backend of the value.")
    ops_provider: Any = backend
    shape: Any = property(attrgetter("value.shape"), doc="The shape of the value.")
    dtype: Any = property(attrgetter("value.dtype"), doc="The native dtype of the value.")

    @property
    def wants_derivative(self) -> bool:
        """Whether its tape or, under `vmap`, that of the whole tensor computes gradients."""
        return self.tape.differentiates or getattr(self.value, "wants_derivative", False)

    @property
    def itemsize(self) -> int:
        """The size of one element in bytes."""
        return self.value.itemsize  # type: ignore[no-any-return]

    @property
    def device(self) -> Any:
        """The native device of the value, if native tensors have that attribute."""
        return self.value.device

    def note_missing(self, name: str) -> None:
        """Reports to the tape an attribute that the function looks for and that only native tensors have."""
        if hasattr(self.value, name):
            self.tape.note_missing(name)

    def item(self) -> NoReturn:
        """Raises `TracedTensorError`, because a Python number has no gradient."""
        self._refuse("item()")

    def tolist(self) -> NoReturn:
        """Raises `TracedTensorError`, because Python numbers have no gradient."""
        self._refuse("tolist()")

    def __len__(self) -> int:
        return len(self.value)

    def __repr__(self) -> str:
        return f"<traced {self.value!r}>"

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    def __bool__(self) -> bool:
        # Allowed, so that Python code may branch on a value: the gradient is that of the branch that runs.
        self.tape.note_read("bool()")
        return bool(self.value)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return self.run(self.tape.backend, op_of_traced(ufunc, method, options, self), inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> NoReturn:
        self._refuse(f"{function.__module__}.{function.__name__}")

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise TracedTensorError(outside_function_message("a function of NumPy or another library"), self)

    def __float__(self) -> NoReturn:
        self._refuse("float()")

    def __int__(self) -> NoReturn:
        self._refuse("int()")

    def __complex__(self) -> NoReturn:
        self._refuse("complex()")

    def __index__(self) -> NoReturn:
        self._refuse("the use as an index")

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TracedTensorError(
            "a traced tensor cannot be changed in place, because the gradients of earlier results would be wrong: "
            "use ops.set_item, ops.scatter_update or ops.where, which return a new tensor"
        )

    def _refuse(self, what: str) -> NoReturn:
        raise outside_function_error(what, self)


op_globals.publish(traced_tensor=TracedTensor)
