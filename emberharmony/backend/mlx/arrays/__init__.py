"""MLX's definitions of making, reading, writing and arranging arrays."""
