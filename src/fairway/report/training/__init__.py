"""Runs of training jobs: their record, numbers, tables, charts and page."""
