"""State that changes whole or not at all: commits, scopes, signal handlers, settings and the files they are kept in."""
