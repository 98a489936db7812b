"""Rules about native libraries that code uses beside the ops."""
