"""Several machines under one served application: TCP between them, Unix sockets and shared memory within each."""
