"""Conversion of the tensors of models between the layouts of PyTorch, MLX and Keras, by a table of layers."""
