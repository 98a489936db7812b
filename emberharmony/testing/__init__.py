"""Tools that prove agreement: samples, conformance, assertions."""
