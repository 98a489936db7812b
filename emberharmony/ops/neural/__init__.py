"""What layers of neural networks compute."""
