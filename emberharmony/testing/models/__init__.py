"""Comparison of two models of any libraries, module by module; `emberharmony.compare` calls it."""
