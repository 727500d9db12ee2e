"""Training jobs: as their users describe them (`description`), and as policies and the engine see them (`job`)."""

from fairway.jobs.job import Entity, Job, Pair

__all__ = ["Entity", "Job", "Pair"]
