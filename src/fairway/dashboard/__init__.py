"""One screen for all runs: the saved run and what writes it, the page that shows it, timelines for other viewers."""
