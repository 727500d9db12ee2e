"""The embedded backend: jobs as processes of this machine, looked after by an agent."""
