"""The loop that a process of a served application waits in."""

from __future__ import annotations

import subprocess
import sys


def test_a_signal_that_another_thread_gets_ends_a_wait() -> None:
    """As one that comes just before the wait begins: the thread that waits is not interrupted."""
    program = """
import os, signal, threading, time
from pathlib import Path
from fairway.live.serving.connections import Connections
from fairway.live.serving.data import SharedBuffers

def end(*_):
    print("heard")
    os._exit(0)

signal.signal(signal.SIGHUP, end)
connections = Connections(Path, SharedBuffers(Path("."), "x"), print, print)
connections.heed_signals()

def send():
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGHUP)

threading.Thread(target=send, daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
connections.wait(None)
time.sleep(0.1)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "heard\n"
