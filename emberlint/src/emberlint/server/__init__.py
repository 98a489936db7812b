"""The language server: `session` checks and repairs the documents of an editor, `protocol` speaks to the editor."""
