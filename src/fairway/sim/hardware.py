"""How long machines take to move data: messages between workers, and models between a host and its accelerator.

Where workers push what they put out (`Links`), a message takes what its data takes; with a queue at each network card,
it first waits for those before it. Where tasks pull their inputs through a store (`Transfers`), messages take no time,
and a task fetches its inputs when it starts. Over links, each accelerator's copies are done one at a time, in the order
in which they were asked for, while it computes; containers of a platform with a store are created side by side. A model
that has to go may be copied back first; one whose copy is under way is stopped.
"""

from __future__ import annotations

import math

from fairway.engine.serving.messages import BatchArrived, Event, InputsArrived, Why
from fairway.links import Links
from fairway.place.fleet import OUTSIDE, Fleet
from fairway.place.graph import TaskGraph
from fairway.sim.serving_recorder import ServingRecorder


class Hardware:
    """The network and the buses of all workers, and until when each is taken."""

    __slots__ = (
        "_all_apart",
        "_bus_until",
        "_eviction_copies",
        "_fetch_seconds",
        "_hosts",
        "_last_copy",
        "_latency",
        "_links",
        "_network_until",
        "_nic_queues",
        "_pulls",
        "_recorder",
        "_seconds",
        "_share_hosts",
        "_to_host_seconds",
    )

    def __init__(
        self, fleet: Fleet, recorder: ServingRecorder, *, eviction_copies: bool = False, nic_queues: bool = False
    ) -> None:
        self._links = fleet.links
        self._pulls = fleet.links.pulls
        self._hosts: list[int] = [*fleet.hosts.tolist(), OUTSIDE]
        self._latency = fleet.links.message_seconds
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
        self._all_apart = not (self._share_hosts or self._pulls or nic_queues)

    def arrival(self, now: float, source: int, target: int, message: Event) -> float:
        """When a message that is sent now is there; but for inputs of tasks, and batches, it speaks of no data."""
        if type(message) is BatchArrived and not self._pulls:
            return self._batch_arrival(now, target, message)
        near = self._share_hosts and self._hosts[source] == self._hosts[target]
        return now if near else now + self._latency

    def inputs_arrival(self, now: float, source: int, target: int, message: InputsArrived) -> float:
        """When inputs of a task that are sent now are there; with a store, that is when the message is."""
        near = False
        if not self._all_apart:
            near = self._share_hosts and self._hosts[source] == self._hosts[target]
            if self._pulls:
                return now if near else now + self._latency
            if self._nic_queues and not near:
                now = self._wait_for_network(now, source, message)
        flow, stage, sources, _ = message
        far, close, inputs = self._seconds.get(flow.graph) or self._columns(flow.graph)
        by_source = close if near else far
        if len(sources) == 1:
            return now + by_source[sources[0]]
        if not sources:
            return now if near else now + inputs[stage]
        return now + sum([by_source[each] for each in sources])

    def _batch_arrival(self, now: float, target: int, batch: BatchArrived) -> float:
        """When all inputs of a batch are there: each comes from the worker that holds it."""
        graph, hosts = batch.flows[0].graph, self._hosts
        far, close, inputs = self._seconds.get(graph) or self._columns(graph)
        before = graph.workflow.predecessors[batch.stage]
        longest = self._latency if before else inputs[batch.stage]
        for flow in batch.flows:
            for source in before:
                at = flow.workers[source]
                if at != target:
                    longest = max(longest, (close if hosts[at] == hosts[target] else far)[source])
        return now + longest

    def _columns(self, graph: TaskGraph) -> list[list[float]]:
        columns = (graph.far_seconds, graph.near_seconds, graph.input_seconds)
        found = self._seconds[graph] = [column.tolist() for column in columns]
        return found

    def load(self, now: float, worker: int, model: int, why: Why = "task") -> float:
        """Copy a model to the accelerator; when it is there."""
        start = now if self._pulls else max(now, self._bus_until[worker])
        end = self._bus_until[worker] = start + self._fetch_seconds[model]
        self._last_copy[worker] = (model, start)
        self._recorder.fetched(worker, model, start, end, why)
        return end

    def evict(self, now: float, worker: int, model: int) -> None:
        """Give a model up: copied back first if that is the way here; a copy that has not ended is stopped."""
        last, since = self._last_copy[worker]
        until = self._bus_until[worker]
        if last == model and until > now and not self._pulls:
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
        bandwidth = self._links.network_bandwidth if isinstance(self._links, Links) else math.inf
        self._network_until[host] = start + size / bandwidth
        return start
