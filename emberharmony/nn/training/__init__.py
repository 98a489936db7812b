"""`nn.fit`: the training loop, the display of its progress, and resuming from a checkpoint."""
