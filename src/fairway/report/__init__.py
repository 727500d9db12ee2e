"""What came of a run: its record, and the numbers, tables and pages made of it."""
