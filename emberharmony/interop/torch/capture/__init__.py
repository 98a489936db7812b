"""The part of the conversion that imports PyTorch: capturing a module, and computing with it for comparison."""
