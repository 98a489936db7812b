"""JAX's definitions of linear algebra."""
