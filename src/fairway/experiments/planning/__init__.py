"""What would happen if: simulates a live queue or a trace forward, as it is and with changes (`plan`)."""

from fairway.experiments.planning.change import Change
from fairway.experiments.planning.goal import Goal
from fairway.experiments.planning.outlook import Outlook
from fairway.experiments.planning.plan import Difference, Plan, plan
from fairway.experiments.planning.present import Present
from fairway.experiments.planning.search import Found, cheapest_addition
from fairway.experiments.planning.world import LiveQueue, TraceWorld, World

__all__ = [
    "Change",
    "Difference",
    "Found",
    "Goal",
    "LiveQueue",
    "Outlook",
    "Plan",
    "Present",
    "TraceWorld",
    "World",
    "cheapest_addition",
    "plan",
]
