"""Trees of tensors: their walk, the classes that are nodes, paths of leaves, tensors in attributes of objects."""
