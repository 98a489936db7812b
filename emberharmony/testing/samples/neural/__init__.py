"""Sample rows of what layers of neural networks compute."""
