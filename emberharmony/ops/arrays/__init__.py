"""Ops that make arrays, and read, write and arrange their elements."""
