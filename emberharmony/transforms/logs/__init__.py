"""What logs and profiles of watched ops are made of: events, lines, costs, and the files of viewers."""
