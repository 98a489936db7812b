"""Where tensors live."""

from __future__ import annotations
