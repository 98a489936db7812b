"""PyTorch's definitions of functions of each element."""
