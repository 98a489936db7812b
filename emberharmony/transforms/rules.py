"""The registry of gradient rules; `emberharmony.rules` fills it when the first tape is made."""

from typing import Any

RULES: dict[str, Any] = {}
CONSTANT: set[str] = set()
LEAVING: set[str] = set()
REFUSED: dict[str, str] = {}
