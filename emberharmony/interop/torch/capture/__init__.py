"""What needs PyTorch: capturing a module, and computing with it for comparison."""
