"""Names that an object lacks: the errors for them, and hints at the names that are probably meant."""
