"""Batching rules of `ops/fft_ops.py`."""

from emberharmony.rules.batching.forms import Rule, along

RULES: dict[str, Rule] = dict.fromkeys(("fft", "ifft", "rfft", "irfft"), along)
