"""Where tensors live, on MLX."""


class MLXDevicesOps:
    """Holds the ops of `ops/devices.py`."""
