"""NumPy's definitions of linear algebra."""
