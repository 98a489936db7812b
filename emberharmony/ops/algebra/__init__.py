"""Products, norms and functions of matrices."""
