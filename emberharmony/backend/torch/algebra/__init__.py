"""PyTorch's definitions of linear algebra."""
