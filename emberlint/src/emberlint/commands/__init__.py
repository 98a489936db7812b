"""The subcommands of `emberlint`, each with the module that defines it."""

COMMANDS = {"check": "check", "fix": "fix", "explain": "explain", "rules": "explain", "inventory": "inventory"}
