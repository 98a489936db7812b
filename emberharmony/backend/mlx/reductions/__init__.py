"""MLX's definitions of reductions, sorting, counting and grouping."""
