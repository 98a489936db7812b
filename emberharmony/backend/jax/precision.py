"""The precision in which JAX multiplies float32, a setting of each thread."""

import threading
from typing import Any

import jax

from emberharmony.backend.jax.device_ops import as_native_device, default_device
from emberharmony.backend.shared.precision import KINDS, STATES, ProductPrecision, Setting

_STATE: Any = jax.default_matmul_precision
_WORDS = {"float32": "float32", "tf32": "tensorfloat32", "bfloat16": "bfloat16"}


class _Threads(threading.local):
    """The matmul precision that is set for this thread."""

    def __init__(self) -> None:
        self.setting = Setting(_STATE.get_local, lambda value: [(_STATE.set_local, value)])


_THREADS = _Threads()


class JAXPrecision(ProductPrecision):
    """The setting `jax_default_matmul_precision`; without one, ops multiply in full precision on every device."""

    def precision_key(self) -> Any:
        """Returns the matmul precision that is set for this thread, or else for the process."""
        return jax.config.jax_default_matmul_precision

    def product_precision(self, device: Any = None) -> dict[str, str]:
        """Returns the precision of "products" and "convolutions", as measured; on a CPU it is always float32."""
        target_device = default_device() if device is None else as_native_device(device)
        return dict.fromkeys(KINDS, STATES[0]) if target_device.platform == "cpu" else super().product_precision(device)

    def precision_setting(self, state: str) -> tuple[Setting, str]:
        """Returns the precision setting of JAX, and JAX's word for a precision."""
        return _THREADS.setting, _WORDS[state]

    def missing_precision_reason(self, state: str) -> str:
        """Returns the text for an error: JAX's setting of the precision had no effect on this device."""
        return (
            "jax_default_matmul_precision was set, and this device does not follow it; leave the block out, or run on "
            "a device that has the precision"
        )
