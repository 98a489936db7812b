"""The mutants, one file for each area, each with a list `MUTANTS`."""
