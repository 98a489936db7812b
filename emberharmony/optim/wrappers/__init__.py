"""What wraps an optimizer or its parameters: accumulation, averages, skipped steps."""
