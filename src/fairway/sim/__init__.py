"""Drives engines in virtual time."""
