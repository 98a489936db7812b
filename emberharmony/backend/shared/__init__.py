"""What the backends share, one file per category of ops: host-side checks, and algorithms without a tensor library."""
