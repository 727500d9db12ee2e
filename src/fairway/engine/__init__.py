"""The state machines that decide: events in, commands out, with no clock, no I/O and no chance but a seed."""
