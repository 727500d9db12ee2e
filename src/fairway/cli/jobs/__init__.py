"""The commands about jobs of a running Fairway: hand them in, look at them, end them."""
