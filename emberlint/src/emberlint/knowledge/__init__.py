"""What the linter knows of the native libraries and of the ops."""
