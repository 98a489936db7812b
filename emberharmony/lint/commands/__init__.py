"""The subcommands of `emberlint`, one file each."""
