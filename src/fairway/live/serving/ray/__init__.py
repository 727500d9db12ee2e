"""A Ray cluster under a served application: Ray places processes and notices when they end, and carries no request."""
