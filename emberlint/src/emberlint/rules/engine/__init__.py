"""Findings of the linter itself: suppressions, the baseline, files that do not parse."""
