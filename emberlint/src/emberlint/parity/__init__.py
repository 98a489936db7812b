"""Parity: what the frontend declares against what each backend defines, read from the source alone."""
