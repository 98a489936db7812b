"""JAX's definitions of functions that take functions: branches, loops, gradients, compilation."""
