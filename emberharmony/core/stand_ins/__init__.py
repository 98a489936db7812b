"""Objects that stand for a tensor: the operators and methods that traced tensors, abstract tensors and cells share."""
