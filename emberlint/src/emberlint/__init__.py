"""emberlint: keeps array code free of any one framework, and tells a tensor from a number."""

__version__ = "0.1.0"
