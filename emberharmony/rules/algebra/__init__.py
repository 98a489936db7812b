"""Gradient rules of linear algebra."""
