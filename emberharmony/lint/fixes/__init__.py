"""Repairs: LibCST edits of the flagged nodes alone, inside out."""

from emberharmony.lint.fixes.apply import fix as fix
