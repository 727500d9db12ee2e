"""The mechanisms of the original systems, with their gaps and defects, for runs that reproduce published numbers."""
