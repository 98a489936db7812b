"""The subcommands of `emberlint`, one to a file; which file holds which."""

COMMANDS = {"check": "check", "fix": "fix", "explain": "explain", "rules": "explain", "inventory": "inventory"}
