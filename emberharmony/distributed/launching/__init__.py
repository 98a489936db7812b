"""`emberharmony launch`: starts the processes of a run, and ends them all."""
