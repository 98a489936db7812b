"""Sample rows of comparisons, truth values and bits."""
