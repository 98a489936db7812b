"""The rules, one per file; the registry finds them by walking this folder."""
