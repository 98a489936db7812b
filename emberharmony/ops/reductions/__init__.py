"""Ops that reduce, sort, count or group the elements along axes."""
