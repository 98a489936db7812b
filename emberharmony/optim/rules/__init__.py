"""The rules of the optimizers: how one step changes a parameter."""
