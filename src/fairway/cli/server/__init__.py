"""The commands that run a server on this machine: `fairway up` and `fairway serve`."""
