"""Rules about what Python does with tensors: operators, truth, loops, numbers."""
