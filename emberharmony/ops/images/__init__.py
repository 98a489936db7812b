"""Ops on samples of a line or a grid: transforms, filters, colours, resizing."""
