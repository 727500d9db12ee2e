"""Jobs that need several workers at once: whole gangs, and the integer program that seats them."""
