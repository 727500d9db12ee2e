"""Runs jobs for real: what drives the engines in real time, and what a job itself uses while it runs."""
