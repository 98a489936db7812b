"""Code that all backends share, one file per category of ops: checks on the host, and algorithms for any library."""
