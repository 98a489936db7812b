"""The ground floor: knows no backend and imports no array library."""
