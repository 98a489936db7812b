"""MLX's definitions of samples of a line or a grid: transforms, filters, resizing."""
