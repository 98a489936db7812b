"""Where tensors live, on PyTorch."""


class TorchDevicesOps:
    """Holds the ops of `ops/devices.py`."""
