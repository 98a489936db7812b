"""How errors, warnings and objects are shown in terminals and notebooks."""
