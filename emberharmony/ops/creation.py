"""Making tensors: filled ones, ranges, grids, windows."""

from __future__ import annotations
