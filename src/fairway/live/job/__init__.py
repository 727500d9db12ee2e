"""What runs inside a user's job: leases, checkpoints, the agreement of a gang."""
