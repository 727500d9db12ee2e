"""Deterministic fault simulation: the real programs of the live system on a simulated clock, disk and network."""
