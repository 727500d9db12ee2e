"""What the serving runtime needs of the machines under it: one protocol for each need, with its conformance kit."""
