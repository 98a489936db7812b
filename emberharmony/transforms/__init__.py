"""The function transforms (derivatives, batching, compilation) and the tape that differentiates any backend."""
