"""The times of an application's stages on whole workers, for configurators that choose batches and nothing else.

Of the configurations of a batch size, the fastest counts. A batch takes its run time and, before that, what its inputs
take to a worker that does not have them: such configurators promise times, and must not promise too much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairway.configure.application import Application
from fairway.configure.configuration import Configuration
from fairway.configure.platform import Platform


@dataclass(frozen=True, eq=False)
class WholeWorkers:
    """By stage, the sizes of batches from the smallest on: `times` as (jobs, seconds), and their configurations."""

    times: tuple[tuple[tuple[int, float], ...], ...]
    configurations: tuple[tuple[Configuration, ...], ...]

    @classmethod
    def of(cls, application: Application, platform: Platform | None = None) -> WholeWorkers:
        """Those of an application; without a platform, inputs take no time."""
        times, configurations = [], []
        if platform is not None:
            application = application.within(platform.cpu, platform.gpu)
        for stage, profile in enumerate(application.profiles):
            fastest: dict[int, int] = {}
            for number, size in enumerate(profile.batch.tolist()):
                if size not in fastest or profile.seconds[number] < profile.seconds[fastest[size]]:
                    fastest[size] = number
            added = 0.0 if platform is None else _input_seconds(application, platform, stage)
            sizes = sorted(fastest)
            times.append(tuple((size, added + float(profile.seconds[fastest[size]])) for size in sizes))
            configurations.append(tuple(profile.configuration(fastest[size]) for size in sizes))
        return cls(tuple(times), tuple(configurations))

    def seconds_of(self, stage: int, jobs: int) -> float:
        """How long so many jobs take at once."""
        return self.times[stage][self._place(stage, jobs)][1]

    def configuration(self, stage: int, jobs: int) -> Configuration:
        """The smallest size that has so many jobs."""
        return self.configurations[stage][self._place(stage, jobs)]

    def largest_within(self, stage: int, seconds: float, jobs: int) -> int:
        """The most of these jobs that are done at once within a time; 0 if not even one is."""
        fits: Sequence[int] = [size for size, time in self.times[stage] if time <= seconds]
        return min(max(fits, default=0), jobs)

    def _place(self, stage: int, jobs: int) -> int:
        sizes = self.times[stage]
        return next((place for place, (size, _) in enumerate(sizes) if size >= jobs), len(sizes) - 1)


def _input_seconds(application: Application, platform: Platform, stage: int) -> float:
    """What the inputs of a stage take to it at most: from a client, or from other workers, all at once."""
    workflow, transfers = application.workflow, platform.transfers
    before = workflow.predecessors[stage]
    if not before:
        return platform.overhead_seconds + transfers.entry_seconds(workflow.input_bytes[stage])
    sizes = [workflow.stages[other].output_bytes for other in before]
    if transfers.pulls:
        sizes = [workflow.input_bytes[stage]]
    return platform.overhead_seconds + max(transfers.message_seconds, *map(transfers.between_hosts, sizes))
