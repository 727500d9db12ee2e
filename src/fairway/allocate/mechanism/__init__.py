"""How shares of time become rounds (Gavel §5)."""
