"""What stands between a job and the engine: the gate where jobs wait, priority classes, and the quotas of teams."""
