"""`emberharmony doctor`: what a machine has, and what its libraries and devices break."""
