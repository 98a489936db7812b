"""emberlint keeps array code independent of any one framework, and tells tensors from numbers."""

__version__ = "0.1.0"
