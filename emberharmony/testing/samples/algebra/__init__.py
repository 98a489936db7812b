"""Sample rows of linear algebra."""
