"""Rules about ops that are declared and those that backends define."""
