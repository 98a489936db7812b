"""The lowest layer: registry, dispatch, dtypes and errors; it imports no backend and no array library."""
