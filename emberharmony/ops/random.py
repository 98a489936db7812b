"""Random numbers."""

from __future__ import annotations
