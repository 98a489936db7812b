"""Where tensors live, on NumPy."""


class NumpyDevicesOps:
    """Holds the ops of `ops/devices.py`."""
