"""Gavel as its authors implemented it: answers, round mechanism and simulated world (Gavel, OSDI 2020, §5 and §7)."""
