"""`fairway simulate`: the commands that try a scheduler on a workload in virtual time."""
