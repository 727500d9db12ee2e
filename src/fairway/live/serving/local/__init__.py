"""The serving seams on one machine: Unix sockets, shared memory, processes."""
