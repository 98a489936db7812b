"""Comparisons and logic, element by element."""

from __future__ import annotations
