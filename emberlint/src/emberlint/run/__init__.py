"""One run: rules over files, caches, suppressions, the baseline, repairs."""
