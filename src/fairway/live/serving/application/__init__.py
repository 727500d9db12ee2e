"""What is served: its definition, its files, and what was measured of it."""
