"""What the machine under a driver has: how much of it there is, and control groups that bound who uses it."""
