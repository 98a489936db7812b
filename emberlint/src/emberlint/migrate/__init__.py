"""Moves the implementations of ops into the folders of their backends."""
