"""Interior answers: of all best allocations, one from the middle, with and without columns for pairs that share."""
