"""Facts about numbers: the limits of dtypes, promotion, the constants of the standard."""
