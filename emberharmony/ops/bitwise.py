"""Bitwise ops on integers and booleans."""

from __future__ import annotations
