"""Modules of PyTorch as modules of this library: captured by `torch.export`, run by the table of ATen."""
