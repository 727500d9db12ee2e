"""How long machines take to move data: messages between workers, and models between a host and its accelerator.

A network message takes what the cost model says; with a queue at each network card, it first waits for those before it.
Each accelerator's copies are done one at a time, in the order in which they were asked for, while it computes. A model
that has to go may be copied back first; one whose copy is under way is stopped.
"""

from __future__ import annotations

from fairway.engine.serving_messages import Event, InputsArrived
from fairway.place.fleet import OUTSIDE, Fleet
from fairway.place.graph import TaskGraph
from fairway.sim.serving_recorder import ServingRecorder


class Hardware:
    """The network and the buses of all workers, and until when each is taken."""

    __slots__ = (
        "_bus_until",
        "_eviction_copies",
        "_fetch_seconds",
        "_hosts",
        "_last_copy",
        "_latency",
        "_links",
        "_network_until",
        "_nic_queues",
        "_recorder",
        "_seconds",
        "_share_hosts",
        "_to_host_seconds",
    )

    def __init__(
        self, fleet: Fleet, recorder: ServingRecorder, *, eviction_copies: bool = False, nic_queues: bool = False
    ) -> None:
        self._links = fleet.links
        self._hosts: list[int] = [*fleet.hosts.tolist(), OUTSIDE]
        self._latency = fleet.links.network(0)
        self._fetch_seconds: list[float] = fleet.fetch_seconds.tolist()
        self._to_host_seconds = [fleet.links.to_host(model.bytes) for model in fleet.models]
        self._bus_until = [0.0] * len(fleet)
        self._last_copy: list[tuple[int, float]] = [(-1, 0.0)] * len(fleet)
        self._network_until = [0.0] * (max(self._hosts) + 2)
        self._share_hosts = len(set(self._hosts)) < len(self._hosts)
        self._seconds: dict[TaskGraph, list[list[float]]] = {}
        self._recorder = recorder
        self._eviction_copies = eviction_copies
        self._nic_queues = nic_queues

    def arrival(self, now: float, source: int, target: int, message: Event) -> float:
        """When a message that is sent now is there, with the data that it speaks of."""
        near = self._share_hosts and self._hosts[source] == self._hosts[target]
        if type(message) is not InputsArrived:
            return now if near else now + self._latency
        flow, stage, sources, _ = message
        graph = flow.graph
        try:
            far, close, inputs = self._seconds[graph]
        except KeyError:
            columns = (graph.far_seconds, graph.near_seconds, graph.input_seconds)
            far, close, inputs = self._seconds[graph] = [column.tolist() for column in columns]
        if self._nic_queues and not near:
            now = self._wait_for_network(now, source, message)
        if not sources:
            return now if near else now + inputs[stage]
        by_source = close if near else far
        return now + (by_source[sources[0]] if len(sources) == 1 else sum([by_source[each] for each in sources]))

    def load(self, now: float, worker: int, model: int) -> float:
        """Copy a model to the accelerator; when it is there."""
        start = max(now, self._bus_until[worker])
        end = self._bus_until[worker] = start + self._fetch_seconds[model]
        self._last_copy[worker] = (model, start)
        self._recorder.fetched(worker, model, start, end)
        return end

    def evict(self, now: float, worker: int, model: int) -> None:
        """Give a model up: copied back first if that is the way here; a copy that has not ended is stopped."""
        last, since = self._last_copy[worker]
        until = self._bus_until[worker]
        if last == model and until > now:
            self._recorder.copy_seconds[worker] -= until - max(since, now)
            self._bus_until[worker] = max(since, now)
            self._last_copy[worker] = (-1, 0.0)
            self._recorder.evicted(worker, model, now, now)
            return
        end = start = now
        if self._eviction_copies:
            start = max(now, until)
            end = self._bus_until[worker] = start + self._to_host_seconds[model]
        self._recorder.evicted(worker, model, start, end)

    def restart(self, now: float, worker: int) -> None:
        """A worker is back, and copies nothing."""
        self._bus_until[worker] = now
        self._last_copy[worker] = (-1, 0.0)

    def _wait_for_network(self, now: float, source: int, message: InputsArrived) -> float:
        """When a host's network card gets to a message."""
        host, workflow = self._hosts[source], message.flow.graph.workflow
        size = sum(workflow.stages[each].output_bytes for each in message.sources)
        if not message.sources:
            size = workflow.input_bytes[message.stage]
        start = max(now, self._network_until[host])
        self._network_until[host] = start + size / self._links.network_bandwidth
        return start
