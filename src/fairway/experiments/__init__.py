"""Experiments of many runs: sweeps over policies, loads, seeds and clusters, their results and what follows."""
