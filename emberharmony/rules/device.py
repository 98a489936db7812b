"""Gradient rules of the ops in `ops/device.py`."""

from typing import Any

from emberharmony.ops.device import get_device, to_device

RULES: dict[str, Any] = {"to_device": (lambda g, y, x, device: to_device(g, get_device(x)),)}
