"""Commands that make one decision of one floor, from a problem file."""
