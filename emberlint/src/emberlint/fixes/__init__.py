"""Repairs: LibCST edits of the reported nodes only, the innermost first."""

from emberlint.fixes.apply import fix as fix
