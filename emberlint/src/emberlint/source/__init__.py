"""Facts read from source files: text, names, imports, uses of native libraries."""
