"""Plans for all stages together: which workers run which of them (Shepherd's Herd, InferLine)."""
