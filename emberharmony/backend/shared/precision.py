"""The precision in which a library multiplies float32: the settings that `ops.precision` changes, and measurements.

A setting says what a library may do; whether the device does it is measured, by a product whose result is known. A
block sets the library for as long as it is open. PyTorch has one setting for all threads, so a thread or task that asks
for another one meanwhile gets an error: its products would be those of the other block.
"""

from __future__ import annotations

import operator
from _thread import RLock  # threading.RLock, without the import of threading
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from itertools import compress, repeat
from typing import TYPE_CHECKING, Any

from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import UnsupportedOpError
from emberharmony.core.state.commits import Step, commit
from emberharmony.core.state.scopes import Entry

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

STATES = ("float32", "tf32", "bfloat16")
"""The precisions, the most exact one first: factors keep 24, 11 and 8 significant bits."""

_LIMITS = (1e-5, 1.4e-3)
"""Relative errors of a product of random matrices below which it is float32, and TF32.

Measured: float32 2e-7 to 5e-7, TF32 2.9e-4 on CUDA and 7.7e-4 on Apple's M5, bfloat16 2.4e-3.
"""

KINDS = ("products", "convolutions")


class Setting:
    """A precision setting of a library, which `ops.precision` blocks of several threads share.

    Args:
        read: returns what is set.
        steps: returns the calls of C functions that set it, for what `read` returned or what a backend wants.
    """

    def __init__(self, read: Callable[[], Any], steps: Callable[[Any], Sequence[Step]]) -> None:
        self.read, self.steps = read, steps
        self.opened: list[Request] = []
        self.base: Any = None


class Request:
    """The request of an open `ops.precision` block: its precision, and the library's setting for it."""

    __slots__ = ("setting", "setting_value", "state")

    def __init__(self, state: str, setting: Setting, wanted: Any) -> None:
        self.state, self.setting, self.setting_value = state, setting, wanted


def _requests(entry: Entry | None) -> list[Request]:
    """Returns the requests of the open `ops.precision` blocks of a stack, the innermost first."""
    requests = []
    while entry is not None:
        requests.append(entry[0])
        entry = entry[1]
    return requests


class Requests:
    """The stack of open `ops.precision` blocks of this thread or task; a change of it sets the libraries."""

    def __init__(self) -> None:
        self._entry: ContextVar[Entry | None] = ContextVar("emberharmony_precision", default=None)
        self._entering = RLock()

    def get(self) -> Entry | None:
        """Returns the stack's entry of the innermost open block, or None."""
        return self._entry.get()

    def set(self, entry: Entry | None) -> None:
        """Makes an entry that of the innermost block, and sets the libraries as it requests."""
        old_requests, new_requests = _requests(self.get()), _requests(entry)
        begun_requests = [request for request in new_requests if request not in old_requests]
        ended_requests = [request for request in old_requests if request not in new_requests]
        with self._entering:
            for request in begun_requests:
                self._check_conflict(request, [*old_requests, *new_requests])
                if not request.setting.opened:
                    request.setting.base = request.setting.read()
            commit(
                [(request.setting.opened.append, request) for request in begun_requests],
                [(self._entry.set, entry)],
                [(request.setting.opened.remove, request) for request in ended_requests],
                *(
                    self._effect_steps(setting, new_requests)
                    for setting in {r.setting: None for r in (*begun_requests, *ended_requests)}
                ),
            )

    @staticmethod
    def _check_conflict(request: Request, own_requests: Sequence[Request]) -> None:
        """Checks that no block of another thread or task requests another precision of the same setting.

        Raises:
            UnsupportedOpError: if one does.
        """
        conflict = next((r for r in request.setting.opened if r.state != request.state and r not in own_requests), None)
        if conflict is not None:
            raise UnsupportedOpError(
                f"precision({request.state!r}): another thread or task computes in {conflict.state!r} now, and the "
                f"library has one setting for both; use one precision at a time, or a process for each"
            )

    @staticmethod
    def _effect_steps(setting: Setting, after: Sequence[Request]) -> Iterable[Step]:
        """Returns the steps that set a library as the innermost block requests, or, without one, as it was before."""
        innermost_request = next((request for request in after if request.setting is setting), None)
        if innermost_request is not None:
            return setting.steps(innermost_request.setting_value)
        # Open blocks of other threads request the same precision, or there had been an error; so change nothing.
        return compress(setting.steps(setting.base), map(operator.not_, repeat(setting.opened)))


def _relative_error(result: Any, exact_result: np.ndarray[Any, Any]) -> float:
    """Returns the relative error of a result, in the Frobenius norm."""
    difference = np.asarray(result, np.float64) - exact_result
    return float(np.linalg.norm(difference) / np.linalg.norm(exact_result))


def product_error(bound: Any, size: int = 128) -> float:
    """Returns the relative error of a product of two random float32 matrices on the default device."""
    a, b = np.random.default_rng(0).standard_normal((2, size, size)).astype(np.float32)
    product = bound.matmul(bound.convert_to_tensor(a), bound.convert_to_tensor(b))
    return _relative_error(bound.to_numpy(product), a.astype(np.float64) @ b)


def convolution_error(bound: Any) -> float:
    """Returns the relative error of a convolution of random float32 images on the default device."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 16, 16, 32)).astype(np.float32)
    kernel = rng.standard_normal((3, 3, 32, 32)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))
    exact_result = np.einsum("nhwiab,abio->nhwo", windows.astype(np.float64), kernel, optimize=True)
    convolution = bound.conv(bound.convert_to_tensor(x), bound.convert_to_tensor(kernel))
    return _relative_error(bound.to_numpy(convolution), exact_result)


_MEASURES = {"products": product_error, "convolutions": convolution_error}


def precision_of_error(error: float) -> str:
    """Returns the precision that a relative error of a product of random matrices shows, such as "float32"."""
    return STATES[sum(not error < limit for limit in _LIMITS)]


class ProductPrecision:
    """The part of a backend that knows how exactly its library multiplies float32.

    By default it is measured, and the library has no setting. A library that has one defines `precision_setting`, and
    may name what is set in `precision_key`, so that it is measured again after a change.
    """

    _measured: dict[Any, str] | None = None

    def precision_key(self) -> Any:
        """Returns a key of the settings on which the measured precision depends, besides the device."""
        return None

    def precision_setting(self, state: str) -> tuple[Setting, Any] | None:
        """Returns the library's precision setting, and its value for a precision; None if the library has no setting.

        Raises:
            UnsupportedOpError: if it has no value for the precision.
        """
        return None

    def missing_precision_reason(self, state: str) -> str:
        """Returns the reason why the library cannot compute in a precision, and the way out, for an error message."""
        return "the library has no setting for it; leave the block out, or run on another backend or device"

    def product_precision(self, device: Any = None) -> dict[str, str]:
        """Returns how exactly "products" and "convolutions" of float32 are computed on a device.

        Each is "float32", "tf32" or "bfloat16", measured at the first question.

        Args:
            device: the device; None for the default one.
        """
        backend: Any = self.without_watchers  # type: ignore[attr-defined]
        if device is not None:
            with backend.device_scope(device):
                return self.product_precision()
        if backend._measured is None:
            backend._measured = {}
        cache_key = backend.bound.get_default_device(), backend.precision_key()
        for product_name, measure in _MEASURES.items():
            if (product_name, cache_key) not in backend._measured:
                error = backend.call_with_own_ops(measure, (backend.bound,), {})
                backend._measured[product_name, cache_key] = precision_of_error(error)
        return {product_name: backend._measured[product_name, cache_key] for product_name in KINDS}
