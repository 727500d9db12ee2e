"""Screens that show a running system again and again."""
