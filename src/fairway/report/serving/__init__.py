"""Runs of requests: their record, numbers, tables, charts and page."""
