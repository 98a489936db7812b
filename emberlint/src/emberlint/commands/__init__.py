"""The subcommands of `emberlint`, each with the module that defines it."""

COMMANDS = {
    "check": "check",
    "fix": "fix",
    "port": "port",
    "explain": "explain",
    "rules": "explain",
    "inventory": "inventory",
    "server": "server",
}
