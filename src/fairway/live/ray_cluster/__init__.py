"""A Ray cluster as both backends on it see it: its address, being its client, and what its nodes offer."""
