"""Searches for the configurations of a path: ESG_1Q, the exact front, brute force, and plans made beforehand."""
