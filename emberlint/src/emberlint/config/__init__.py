"""The settings of `[tool.emberlint]` and their defaults."""
