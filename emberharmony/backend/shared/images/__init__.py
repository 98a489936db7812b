"""What backends share of samples of a line or a grid: transforms, filters, resizing."""
