"""The parts of GPUs that runs have: what their processes find, and the daemons of MPS that hold them to it.

A GPU of which runs have parts has a control daemon of MPS (`devices.mps`) for as long as one of them is active. Where
there can be none, the runs have their parts all the same, and a caveat says that nothing holds them to it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from fairway.live.backend.accelerators import Accelerator
from fairway.live.devices.mps import MpsDaemons, MpsError

NOT_ENFORCED = "parts of GPUs are counted, but not enforced: {}"

_LOOK_SECONDS = 10.0
_NVIDIA = ("GPU-", "MIG-")
"""How the UUIDs of NVIDIA's GPUs and of their instances begin."""


@dataclass(slots=True)
class GpuParts:
    """What holds runs to their parts; without `daemons` nothing does."""

    daemons: MpsDaemons | None = None
    _troubles: dict[str, str] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)
    _look_at: float = 0.0

    def environments(self, accelerators: Sequence[Accelerator], share: float) -> list[dict[str, str]]:
        """What each rank finds besides, by which CUDA comes to the daemon of its GPU."""
        return [self._environment(one, share) for one in accelerators]

    def _environment(self, accelerator: Accelerator, share: float) -> dict[str, str]:
        device = accelerator.device
        if self.daemons is None or share == 1 or device is None or not device.startswith(_NVIDIA):
            return {}
        self._used.add(device)
        memory = None if accelerator.memory_bytes is None else int(accelerator.memory_bytes * share)
        try:
            found = self.daemons.client_environment(device, share, memory)
        except MpsError as error:
            self._troubles[device] = str(error)
            return {}
        self._troubles.pop(device, None)
        return found

    def look_after(self, in_parts: Collection[str | None], now: float) -> None:
        """Now and then: start daemons that have died again, and end those of GPUs of which no run has a part."""
        if self.daemons is None or now < self._look_at:
            return
        self._look_at = now + _LOOK_SECONDS
        for device in self._used - {one for one in in_parts if one is not None}:
            self.daemons.stop(device)
            self._used.discard(device)
            self._troubles.pop(device, None)
        self._troubles.update(self.daemons.watch())

    @property
    def caveats(self) -> tuple[str, ...]:
        """What is not enforced, a sentence each."""
        return tuple(NOT_ENFORCED.format(why) for why in dict.fromkeys(self._troubles.values()))
