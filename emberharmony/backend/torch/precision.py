"""The precision in which PyTorch multiplies float32: settings of the process, by library and kind of op.

There are two generations. `torch.set_float32_matmul_precision` and `cudnn.allow_tf32` are read by programs and by
Inductor, and raise an error if the newer `fp32_precision` says something else (PyTorch 2.13), so both are set.
"""

from typing import Any

import torch

from emberharmony.backend.shared.precision import ProductPrecision, Setting
from emberharmony.backend.torch.device_ops import place
from emberharmony.core.errors import UnsupportedOpError

_native: Any = torch._C
_PAIRS = tuple((library, op) for library in ("cuda", "mkldnn") for op in ("matmul", "conv", "rnn"))
"""The settings of the newer generation: "cuda" has those of cuBLAS and cuDNN, "mkldnn" those of the CPU and of XPU."""
_MATMUL = {"float32": "highest", "tf32": "high", "bfloat16": "medium"}
_WORDS = {"float32": "ieee", "tf32": "tf32", "bfloat16": "bf16"}

Values = tuple[str | None, bool | None, tuple[str | None, ...]]
"""What the older generation says of products and of cuDNN, and the newer one for each pair; None is not touched."""


def _older_setting(read: Any) -> Any:
    """Returns a setting of PyTorch's older interface; None if it contradicts the newer interface."""
    try:
        return read()
    except RuntimeError as error:
        if "mix of the legacy and new APIs" not in str(error):
            raise
        return None


def _read_settings() -> Values:
    return (
        _older_setting(_native._get_float32_matmul_precision),
        _older_setting(_native._get_cudnn_allow_tf32),
        tuple(_native._get_fp32_precision_getter(*pair) for pair in _PAIRS),
    )


def _setting_steps(values: Values) -> list[tuple[Any, ...]]:
    matmul_setting, cudnn_setting, words = values
    older_steps = [
        (_native._set_float32_matmul_precision, matmul_setting),
        (_native._set_cudnn_allow_tf32, cudnn_setting),
    ]
    newer_steps = [(_native._set_fp32_precision_setter, *pair, word) for pair, word in zip(_PAIRS, words, strict=True)]
    # The newer settings come last, because the older ones change some of them.
    return [step for step in (*older_steps, *newer_steps) if step[-1] is not None]


SETTING = Setting(_read_settings, _setting_steps)


class TorchPrecision(ProductPrecision):
    """The settings of PyTorch."""

    def precision_key(self) -> Any:
        """Returns the present values of all precision settings."""
        return _read_settings()[2]

    def precision_setting(self, state: str) -> tuple[Setting, Values]:
        """Returns PyTorch's precision setting, and its value for a precision.

        Raises:
            UnsupportedOpError: on CUDA for bfloat16, which PyTorch has for the CPU only.
        """
        target_device = place(None) or torch.get_default_device()
        if target_device.type == "cuda" and state == "bfloat16":  # needs an accelerator
            raise UnsupportedOpError(
                "precision('bfloat16') on backend 'torch', device 'gpu': PyTorch has no such setting for CUDA; use "
                "'tf32', or ops.autocast('bfloat16'), which rounds results too"
            )
        # PyTorch takes "medium" for TF32 on CUDA, so a product there stays what PyTorch makes of the setting.
        cuda_word = "tf32" if state == "bfloat16" else _WORDS[state]
        words = tuple(cuda_word if library == "cuda" else _WORDS[state] for library, _ in _PAIRS)
        return SETTING, (_MATMUL[state], state != "float32", words)

    def missing_precision_reason(self, state: str) -> str:
        """Returns the text for an error: PyTorch's setting of the precision had no effect on this device."""
        return (
            "PyTorch's settings fp32_precision were set, and this device does not follow them; leave the block out, "
            "or run on a device that has the precision"
        )
