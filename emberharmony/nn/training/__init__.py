"""`nn.fit`: the loop, what it shows, and how it goes on from a checkpoint."""
