"""What backends share of making, reading, writing and arranging arrays."""
