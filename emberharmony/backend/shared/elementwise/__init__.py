"""What backends share of functions of each element."""
