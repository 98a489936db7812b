"""The tensors of layers in the layouts of PyTorch, MLX and Keras: a row for each class, and conversion by the rows."""
