"""The program of a worker process on this machine.

python -m fairway.live.serving.local.worker_program SETTINGS NUMBER EPOCH PARENT
"""

from __future__ import annotations

import sys

from fairway.live.serving.local.lifetime import serve_until_ended
from fairway.live.serving.local.unix_transport import UnixTransport
from fairway.live.serving.runtime.worker import ServingWorker
from fairway.live.serving.seams.backend import backend_of
from fairway.live.serving.supervise.settings import ServingSettings


def worker(settings: ServingSettings, number: int, epoch: int) -> ServingWorker:
    """The worker that this process is."""
    made = ServingWorker(settings, number, epoch, backend_of(settings))
    assert isinstance(made.transport, UnixTransport), "this program serves from this machine"
    made.transport.heed_signals()
    return made


if __name__ == "__main__":
    serve_until_ended(worker, *sys.argv[1:])
