"""Faults in a simulated serving system: workers, supervisor and clients, with requests that are honest or do harm."""
