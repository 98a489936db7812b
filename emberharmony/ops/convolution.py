"""Convolution, pooling and attention."""

from __future__ import annotations
