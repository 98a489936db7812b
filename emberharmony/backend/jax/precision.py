"""How exactly JAX multiplies float32: a setting of each thread, by which JAX keeps its compiled programs apart."""

import threading
from typing import Any

import jax

from emberharmony.backend.jax.device_ops import default_device, native
from emberharmony.backend.shared.precision import KINDS, STATES, ProductPrecision, Setting

_STATE: Any = jax.default_matmul_precision
_WORDS = {"float32": "float32", "tf32": "tensorfloat32", "bfloat16": "bfloat16"}


class _Threads(threading.local):
    """The setting of this thread."""

    def __init__(self) -> None:
        self.setting = Setting(_STATE.get_local, lambda value: [(_STATE.set_local, value)])


_THREADS = _Threads()


class JAXPrecision(ProductPrecision):
    """The setting `jax_default_matmul_precision`; without one, ops multiply in full precision on every device."""

    def precision_key(self) -> Any:
        """Returns what is set for this thread, or for the process."""
        return jax.config.jax_default_matmul_precision

    def product_precision(self, device: Any = None) -> dict[str, str]:
        """Returns what was measured; on a CPU, where XLA has one precision, it is known without compiling programs."""
        target_device = default_device() if device is None else native(device)
        return dict.fromkeys(KINDS, STATES[0]) if target_device.platform == "cpu" else super().product_precision(device)

    def precision_setting(self, state: str) -> tuple[Setting, str]:
        """Returns the setting, and JAX's word for the precision."""
        return _THREADS.setting, _WORDS[state]

    def no_precision(self, state: str) -> str:
        """Returns that the setting was made, and had no effect."""
        return (
            "jax_default_matmul_precision was set, and this device does not follow it; leave the block out, or run on "
            "a device that has the precision"
        )
