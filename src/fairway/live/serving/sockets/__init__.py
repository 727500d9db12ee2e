"""What transports over sockets share, of whatever kind the sockets are: framing, and the wait for all of them."""
