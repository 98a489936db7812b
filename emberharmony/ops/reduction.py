"""Reductions and cumulative ops over axes."""

from __future__ import annotations
