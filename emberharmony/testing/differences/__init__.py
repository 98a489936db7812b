"""Comparison of two runs of a program, call by call: `emberharmony.compare`."""
