"""MLX's definitions of linear algebra."""
