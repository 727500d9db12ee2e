"""The serving seams in one process and in virtual time, on which whole worker programs run, step by step."""
