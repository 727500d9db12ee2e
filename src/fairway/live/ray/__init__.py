"""The backend of many machines: the agent of `fairway.live.local` on every node of a Ray cluster."""
