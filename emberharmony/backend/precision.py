"""`ops.precision`: how exactly products and convolutions of float32 are computed, and a block that chooses it."""

import contextlib
from typing import Any, Literal, overload

from emberharmony.backend.shared.precision import STATES, Request, Requests, Setting
from emberharmony.core import selection
from emberharmony.core.errors import ArgumentError, UnsupportedOpError, brief, suggest
from emberharmony.core.state.scopes import Scope

State = Literal["float32", "tf32", "bfloat16"]


@overload
def precision() -> dict[str, str]: ...


@overload
def precision(state: State) -> "PrecisionBlock": ...


def precision(state: State | None = None) -> "dict[str, str] | PrecisionBlock":
    """Returns how exactly the active backend multiplies float32; with a name, a block or decorator that chooses it.

    GPUs can round the factors of a product to fewer bits, which is faster: "float32" keeps 24 significant bits, "tf32"
    11 and "bfloat16" 8; sums are in float32 in any case. So one product is off by 5e-7, 5e-4 or 3e-3. Without a block
    a library does what it does by default: see the table on the page of devices, or `emberharmony info`.

    `ops.precision()` has two entries, "products" and "convolutions". It is measured, because what a setting allows is
    not what a device does. The block sets the library of the active backend and measures too, so that a precision that
    the device does not have is an error. float64, half precision and integers do not change.

    On PyTorch the setting belongs to the process: threads and tasks without a block of their own compute in the same
    precision meanwhile, and a block with another one raises an error. MLX reads its setting once, at the first product
    on a GPU, from the environment variable MLX_ENABLE_TF32. Enter a block outside of functions that are compiled.

    Args:
        state: "float32", "tf32" or "bfloat16"; None to ask.

    Returns:
        the dict, or a context manager that is a decorator too.

    Raises:
        ArgumentError: if there is no such precision.
        UnsupportedOpError: on entry, if the backend or device does not have the precision, or another thread or task
            has chosen another one of a setting that they share.

    Example:
        >>> with ops.precision("float32"):
        ...     ops.precision()["products"]
        'float32'
    """
    if state is None:
        backend: Any = selection.current()
        product_precision: dict[str, str] = backend.product_precision()
        return product_precision
    if state not in STATES:
        raise ArgumentError(f"precision() takes {', '.join(STATES)}, not {brief(state)}{suggest(str(state), STATES)}")
    return PrecisionBlock(state)


class PrecisionBlock(Scope, contextlib.ContextDecorator):
    """A block in which float32 tensors are multiplied in a given precision; see `ops.precision`."""

    _stack: Any = Requests()

    def __init__(self, state: str) -> None:
        super().__init__()
        self._state = state

    @classmethod
    def is_open(cls) -> bool:
        """Returns whether this thread or task is in such a block."""
        return cls._stack.get() is not None

    def __enter__(self) -> None:
        backend: Any = selection.current()
        # A library without a setting computes as it always does, so the block needs no lock against others.
        setting, setting_value = backend.precision_setting(self._state) or (Setting(lambda: None, lambda _: ()), None)
        outer_entry = self._stack.get()
        self._stack.set((Request(self._state, setting, setting_value), outer_entry, self, self._watch))
        current_precision = backend.product_precision()
        rank_of = STATES.index
        if current_precision["products"] != self._state or rank_of(current_precision["convolutions"]) > rank_of(
            self._state
        ):
            self._stack.set(outer_entry)
            raise UnsupportedOpError(
                f"precision({self._state!r}) on backend {backend.name!r}, device {backend.get_default_device()!r}: "
                f"products of float32 are computed in {current_precision['products']} and convolutions in "
                f"{current_precision['convolutions']} there; {backend.missing_precision_reason(self._state)}"
            )
