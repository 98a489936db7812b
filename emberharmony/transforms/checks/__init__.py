"""The checks of `ops.checked` that watch the calls of ops."""
