"""Sample rows of making, reading, writing and arranging arrays."""
