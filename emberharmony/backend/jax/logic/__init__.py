"""JAX's definitions of comparisons, truth values and bits."""
