"""Sample rows of reductions, sorting, counting and grouping."""
