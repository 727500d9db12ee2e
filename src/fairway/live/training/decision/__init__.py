"""Deciding within a budget: the process that decides, and what becomes of a job about which none can."""
