"""Who keeps the workers of an application alive, and how a worker process lives and ends."""
