"""Who can serve workflows, by name: schedulers that choose workers, and configurators, which choose batches too."""

from __future__ import annotations

from fairway.configure.configurators import CONFIGURATORS
from fairway.configure.registry import configurator_of, is_configurator
from fairway.errors import InputError
from fairway.options import nearest
from fairway.place.registry import scheduler_of
from fairway.place.schedulers import SCHEDULERS


def check_scheduler_name(text: str) -> None:
    """Refuse a name or an option that nobody knows."""
    if is_configurator(text):
        configurator_of(text)
        return
    name = text.partition(":")[0].strip()
    known = (*SCHEDULERS, *CONFIGURATORS)
    if name not in known:
        raise InputError(f"scheduler '{name}' is not known{nearest(name, known)}; known: {', '.join(known)}")
    scheduler_of(text)
