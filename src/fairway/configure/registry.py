"""Configurators by name: `name[:option,...]`, as in `esg:margin=0.1`, `esg:k=1,shed` or `aquatope:exact`.

An option is a field of the configurator's class (`fairway.options`).
"""

from __future__ import annotations

from fairway.configure.configurator import Configurator
from fairway.configure.configurators import CONFIGURATORS
from fairway.options import named


def configurator_of(text: str) -> Configurator:
    """The configurator that a name with options stands for."""
    return named("configurator", text, CONFIGURATORS)


def is_configurator(text: str) -> bool:
    """Whether a scheduler chooses configurations, not only workers; whatever its options are."""
    return text.partition(":")[0].strip() in CONFIGURATORS
