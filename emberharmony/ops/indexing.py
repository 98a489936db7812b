"""Reading and writing by index."""

from __future__ import annotations
