"""Sorting, searching and sets."""

from __future__ import annotations
