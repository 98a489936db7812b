"""State changes that happen completely or not at all: commits, scopes, checked mode, handlers, settings."""
