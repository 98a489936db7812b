"""Activations, normalisations and losses."""

from __future__ import annotations
