"""What a configurator is: parameters, a name, how queues take turns under it, a placer, and one verb: `prepare`.

It is asked once for each application, before that serves, and may take its time, as to train. What it returns decides
for one queue at a time, from that queue and the free capacity alone: no clock, no I/O, no memory of earlier decisions,
and no chance but the draws that `prepare` was given.
"""

from __future__ import annotations

from typing import ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from fairway.configure.application import Application
from fairway.configure.capacity import Capacity
from fairway.configure.platform import Platform
from fairway.configure.queues import Decision, Queue

TurnOrder = Literal["recheck", "ring", "slack", "largest"]
"""Which queue is asked first: see `fairway.configure.turns`."""


class QueueConfigurator(Protocol):
    """Decides for the queues of one application."""

    def decide(self, queue: Queue, capacity: Capacity) -> Decision:
        """Say in which sizes a batch may start, or wait for more jobs; never asked of an empty queue."""
        ...


@runtime_checkable
class Configurator(Protocol):
    """Chooses batch sizes, CPUs and GPU slices; `check_configurator` tests any class that claims to be one."""

    name: ClassVar[str]

    @property
    def placer(self) -> str:
        """The placer that chooses the worker of its batches unless another one is named (`fairway.place.placers`)."""
        ...

    @property
    def turns(self) -> TurnOrder:
        """How queues take turns."""
        ...

    def prepare(self, application: Application, platform: Platform, draws: np.random.Generator) -> QueueConfigurator:
        """Work out all that does not depend on queues."""
        ...
