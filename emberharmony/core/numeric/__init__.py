"""Facts about numbers: the limits of dtypes, dtype promotion, the constants of the array API standard."""
