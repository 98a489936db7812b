"""What backends share of what layers of neural networks compute."""
