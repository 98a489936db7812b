"""The training runs of `emberharmony demo`: programs that switch the backend during training, beside NumPy alone."""
