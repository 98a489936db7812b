"""State changes that happen completely or not at all: commits, scopes, signal handlers, settings and their file."""
