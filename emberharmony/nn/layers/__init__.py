"""The layers, one file or folder for each family."""
