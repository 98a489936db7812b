"""Every op with odd arguments, in a process that may die: no signal, no hang, no untyped error, no changed input."""
