"""Checkpoints: folders with the whole state of a training."""
