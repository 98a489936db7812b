"""Changing the shape: reshaping, transposing, joining, splitting, repeating."""

from __future__ import annotations
