"""What is read from source files: text, names, imports, native things."""
