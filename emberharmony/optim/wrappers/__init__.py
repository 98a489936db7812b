"""Wrappers of an optimizer or its parameters, such as accumulation of gradients and averages of weights."""
