"""JAX's definitions of what layers of neural networks compute."""
