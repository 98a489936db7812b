"""The settings of `[tool.emberlint]`, and what holds where they say nothing."""
