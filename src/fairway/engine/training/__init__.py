"""The training engine: jobs and workers in, leases out, round by round (Gavel §5)."""
