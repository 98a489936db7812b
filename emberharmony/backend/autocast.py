"""Mixed precision: inside of an `autocast` block some ops compute in half precision, and others in float32.

The rules are the same on every backend. They stand above the tape and the native gradients: an argument is cast by
`ops.cast`, so the gradient returns to its dtype. What a composite calls inside is not cast again, because a backend may
have the composite as one function of its own.

Inside of an implementation, where a wrapping backend would cast, the tape has noted the arguments already, and a
gradient would have the dtype of the cast ones. Rules of gradients run without the casts. A compiled function is
compiled once for each kind of ops (`Bound.variant`). Dynamo (PyTorch 2.13) cannot trace how a `ContextVar` chooses the
ops, so while a function is compiled as a whole guarded ops read a constant; a function that cannot be compiled as a
whole runs uncompiled in a block, because compiled in parts it took the wrong ops without an error.
"""

from typing import Any

from emberharmony.core import selection
from emberharmony.core.cells.cell import Cell
from emberharmony.core.errors import DTypeError, brief
from emberharmony.core.registry import OPS, OpSpec
from emberharmony.core.types import DTypeLike

_NARROWED = ("float16", "bfloat16", "float32")


class _Casting:
    """The ops of a backend with the rules of `autocast`, in the place of a `Bound`; and itself, as a backend has one.

    Args:
        inner: the ops of the backend.
        half: the dtype of the ops that say `autocast="half"`.
    """

    def __init__(self, inner: Any, half: str) -> None:
        self.inner, self.half = inner, half
        self.backend = inner.backend
        self.variant = f"{inner.variant} autocast {half}"

    @property
    def bound(self) -> "_Casting":
        """The ops that an override of the backend installs, which are these themselves."""
        return self

    def wrap_ops(self, inner: Any) -> "_Casting":
        """Returns ops that cast the arguments of `inner`, other ops of the backend, by the same rules of `autocast`."""
        return _Casting(self.inner.wrap_ops(inner), self.half)

    def __getattr__(self, name: str) -> Any:
        inner_op = getattr(self.inner, name)
        spec = OPS.get(name)
        target_dtype = None if spec is None else {"half": self.half, "float32": "float32"}.get(spec.facts.autocast)
        if spec is None or spec.takes_callable or (target_dtype is None and not spec.composite):
            wrapped_op = inner_op
        else:
            wrapped_op = self._casting_op(inner_op, target_dtype, spec)
        setattr(self, name, wrapped_op)
        return wrapped_op

    def _casting_op(self, inner: Any, target: str | None, spec: OpSpec) -> Any:
        """Returns an op that casts its tensors first; a composite then runs without the rules of `autocast`."""
        backend, composite = self.inner.backend, spec.composite
        whole_list_parameters = {p.name for p in spec.parameters if p.role == "TensorLike"}
        positional_names = [p.name for p in spec.parameters if not p.keyword_only]

        def call_with_cast(*args: Any, **kwargs: Any) -> Any:
            if target is not None:
                whole_list_flags = (
                    positional_names[min(i, len(positional_names) - 1)] in whole_list_parameters
                    for i in range(len(args))
                )
                args = tuple(
                    [
                        self._cast_argument(x, target, takes_whole_list)
                        for x, takes_whole_list in zip(args, whole_list_flags, strict=True)
                    ]
                )
                kwargs = {
                    name: self._cast_argument(x, target, name in whole_list_parameters) for name, x in kwargs.items()
                }
            return backend.call_with_own_ops(inner, args, kwargs) if composite else inner(*args, **kwargs)

        return call_with_cast

    def _cast_argument(self, x: Any, target: str, takes_whole_list: bool) -> Any:
        """Returns a tensor of a floating dtype up to 32 bits as one of another dtype; anything else unchanged.

        Args:
            x: an argument of an op.
            target: the dtype.
            takes_whole_list: whether a list is one tensor; otherwise each tensor in it is cast.
        """
        if type(x) in (list, tuple):
            if not takes_whole_list:
                return type(x)([self._cast_argument(item, target, False) for item in x])
            x = self.inner.convert_to_tensor(x)
        if isinstance(x, Cell):
            x = x.tensor_on(self.inner)
        elif not self.backend.is_tensor(x):
            return x
        dtype_name = self.backend.dtype_of(x).name
        return self.inner.cast(x, target) if dtype_name != target and dtype_name in _NARROWED else x


class autocast(selection.Override):  # noqa: N801  (a context manager that reads as a function, like use_backend)
    """A block in which products, convolutions and attention compute in half precision, for this thread or task.

    Parameters keep their dtype, and so do gradients. Ops that overflow easily or add many numbers (softmax, exp, sums,
    norms, losses) compute in float32. All others compute in the widest dtype of their arguments. The page on training
    lists the ops. The rules are the same on every backend; tensors of float64 and integers stay as they are.

    A `use_backend` inside of the block ends it for its own block, and `autocast(enabled=False)` does so too. With
    float16, scale the loss by `optim.LossScaler`, so that small gradients do not become 0.

    Args:
        dtype: "bfloat16" or "float16".
        enabled: False computes in the dtypes of the arguments.

    Raises:
        DTypeError: if the dtype is not one of the two, or if the backend lacks it.

    Example:
        >>> with ops.autocast("float16"):
        ...     product = ops.matmul(ops.ones((2, 2)), ops.ones((2, 2)))
        >>> ops.dtype(product), ops.dtype(ops.softmax(product))
        (emberharmony.float16, emberharmony.float16)
    """

    __slots__ = ("_dtype", "_enabled")

    def __init__(self, dtype: DTypeLike = "bfloat16", *, enabled: bool = True) -> None:
        super().__init__(None)
        self._dtype, self._enabled = dtype, enabled

    def _choose_backend(self) -> Any:
        backend = selection.current()
        if not self._enabled:
            return backend
        native_dtype = backend.dtypes[self._dtype]
        half_dtype = backend.dtypes.neutral[native_dtype].name
        if half_dtype not in ("float16", "bfloat16"):
            raise DTypeError(f"autocast() takes 'bfloat16' or 'float16', not {brief(self._dtype)}")
        return _Casting(backend.bound, half_dtype)
