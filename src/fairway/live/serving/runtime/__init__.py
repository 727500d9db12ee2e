"""What a worker process does: runs stages, loads models, answers clients."""
