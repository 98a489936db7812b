"""Conversion of PyTorch modules: `torch.export` captures their graph, and ops compute its ATen operators."""
