"""Repairs: LibCST edits of the flagged nodes alone, inside out."""

from emberlint.fixes.apply import fix as fix
