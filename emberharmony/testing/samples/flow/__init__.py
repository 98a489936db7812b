"""Sample rows of functions that take functions: branches, loops, gradients, compilation."""
