"""Where the loop of a controller stands: its states, the ways from one to the next, and the one method that goes them.

```
  WAITING ──────────▶ BEGINNING ───────────────────────────▶ FAILED
     │                 ▲  │  ▲ ▲                              │  ▲
     ▼                 │  │  │ └──────── after a wait ────────┘  │
  WAITING_TO_CLOSE ────┘  │  │ other accelerators               │ the store or the
                          ▼  │ (not from DOUBTFUL)              │ scheduling fails
          ┌────────────────────────────────────────────────────────────┐
          │  ATTACHED ◀────────▶ DOUBTFUL ◀────────▶ DETACHED          │
          │      └─────────────────────────────────────▲               │
          └────────────────────────────────────────────────────────────┘
  every state ──▶ OVER
```

The three states in the box are those in which jobs are scheduled; they differ in how things stand with the backend.
That all jobs are to stop is no state of the loop: it is one of its session, and of every session that follows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from enum import Enum

from fairway.engine.protocol import TransitionError

_REMEMBERED = 20
"""How many of the last states an error names."""


class State(Enum):
    """What the loop is doing."""

    WAITING = "waiting"
    """The backend has not been heard of yet, so there is no session."""

    WAITING_TO_CLOSE = "waiting to close"
    """The same, but the first session is to close at once: all that runs is to save and stop."""

    BEGINNING = "beginning"
    """A session is made from what the store holds."""

    ATTACHED = "attached"
    """Jobs are scheduled, and the backend does what it is asked."""

    DOUBTFUL = "doubtful"
    """Jobs are scheduled, but what the backend runs has to be compared with what should run."""

    DETACHED = "detached"
    """Jobs are scheduled, but the backend is away, and nothing is asked of it."""

    FAILED = "failed"
    """The store or the scheduling has failed: nothing is decided until a new session is made, after a wait."""

    OVER = "over"
    """Nothing more is begun, and nothing is asked of the backend; what was decided before is made durable."""


TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.WAITING: frozenset({State.WAITING_TO_CLOSE, State.BEGINNING, State.OVER}),
    State.WAITING_TO_CLOSE: frozenset({State.BEGINNING, State.OVER}),
    State.BEGINNING: frozenset({State.ATTACHED, State.DOUBTFUL, State.DETACHED, State.FAILED, State.OVER}),
    State.ATTACHED: frozenset({State.DOUBTFUL, State.DETACHED, State.BEGINNING, State.FAILED, State.OVER}),
    State.DOUBTFUL: frozenset({State.ATTACHED, State.DETACHED, State.FAILED, State.OVER}),
    State.DETACHED: frozenset({State.DOUBTFUL, State.BEGINNING, State.FAILED, State.OVER}),
    State.FAILED: frozenset({State.BEGINNING, State.OVER}),
    State.OVER: frozenset(),
}
"""The states that can follow each state. To stay in a state is always possible, and changes nothing."""

SCHEDULING = frozenset({State.ATTACHED, State.DOUBTFUL, State.DETACHED})
"""The states in which jobs are scheduled."""


class Course:
    """The state of a loop, which begins by waiting, and the last states before it."""

    def __init__(self) -> None:
        self._states: deque[State] = deque([State.WAITING], maxlen=_REMEMBERED)

    @property
    def state(self) -> State:
        """The present state."""
        return self._states[-1]

    @property
    def past(self) -> tuple[State, ...]:
        """The last states, the present one included, the oldest first."""
        return tuple(self._states)

    @property
    def schedules(self) -> bool:
        """Whether jobs are scheduled."""
        return self.state in SCHEDULING

    @property
    def over(self) -> bool:
        """Whether nothing more is done."""
        return self.state is State.OVER

    def to(self, state: State) -> None:
        """Go to a state; raises a `TransitionError`, with the way so far, where no way leads there from here."""
        if state is self.state:
            return
        if state not in TRANSITIONS[self.state]:
            way = ", ".join(each.value for each in self._states)
            raise TransitionError(f"the loop cannot go from '{self.state.value}' to '{state.value}'; so far: {way}")
        self._states.append(state)
