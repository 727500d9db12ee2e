"""What policies are made of: prices that balance a cluster, linear programs, levels, interior answers."""
