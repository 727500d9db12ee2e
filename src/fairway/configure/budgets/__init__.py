"""Which part of a request's time each stage gets: by dominators, with a margin for noise."""
