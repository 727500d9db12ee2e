"""The vocabulary of the serving engine: the events that it takes in and the commands that it answers with.

Both are tuples: they are made by the million in a simulation.
"""

from __future__ import annotations

from fairway.engine.serving.messages.commands import (
    HIT,
    MISS,
    NO_MODEL,
    PARTIAL,
    Command,
    Evict,
    Load,
    Mate,
    PublishLoad,
    PublishModels,
    Refuse,
    Reply,
    Restarted,
    Run,
    Send,
    Stop,
    Why,
)
from fairway.engine.serving.messages.events import (
    FAILED,
    HOPELESS,
    IMPOSSIBLE,
    LATE,
    NONE_FAILED,
    SHED,
    UNPLACEABLE,
    BatchArrived,
    BatchDone,
    BatchStopped,
    Cancelled,
    Event,
    Forget,
    InputsArrived,
    ModelFailed,
    ModelLoaded,
    OutputGone,
    Pin,
    ProgressAsked,
    ProgressTold,
    Replanned,
    RequestArrived,
    SendAgain,
    StageDone,
    StageMoved,
    StageStuck,
    TakesUntil,
    TaskDone,
    TimePassed,
    Warm,
)
from fairway.engine.serving.messages.news import (
    PeerCopies,
    PeerJoined,
    PeerLoad,
    PeerLost,
    PeerModels,
    RowAsked,
    RowTold,
    TasksWanted,
)

__all__ = [
    "FAILED", "HIT", "HOPELESS", "IMPOSSIBLE", "LATE", "MISS", "NONE_FAILED", "NO_MODEL", "PARTIAL", "SHED",
    "UNPLACEABLE",
    "BatchArrived", "BatchDone", "BatchStopped", "Cancelled", "Command", "Event", "Evict", "Forget", "InputsArrived",
    "Load", "Mate", "ModelFailed", "ModelLoaded", "OutputGone", "PeerCopies", "PeerJoined", "PeerLoad", "PeerLost",
    "PeerModels", "Pin", "ProgressAsked", "ProgressTold", "PublishLoad", "PublishModels", "Refuse", "Replanned",
    "Reply", "RequestArrived", "Restarted", "RowAsked", "RowTold", "Run", "Send", "SendAgain", "StageDone",
    "StageMoved", "StageStuck", "Stop", "TakesUntil", "TaskDone", "TasksWanted", "TimePassed", "Warm", "Why",
]  # fmt: skip
