"""Ops that take functions: branches, loops, and transforms such as gradients."""
