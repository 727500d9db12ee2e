"""The serving engine: requests in, batches of tasks on workers out."""
