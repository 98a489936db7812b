"""What backends share of reductions, sorting, counting and grouping."""
