"""The agent: the process that looks after the jobs of a machine, and how a controller talks to it."""
