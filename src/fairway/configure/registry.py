"""Configurators by name: `name[:option,...]`, as in `esg:margin=0.1`, `esg:k=1,shed` or `aquatope:exact`.

An option is a field of the configurator's class (`fairway.options`); a class of any module has `module:Class` for a
name, and installed packages may offer others (`fairway.parts`).
"""

from __future__ import annotations

from fairway.configure.configurator import Configurator
from fairway.configure.configurators import CONFIGURATORS
from fairway.parts import Parts

CONFIGURATOR_PARTS: Parts[Configurator] = Parts("configurator", "fairway.configurators", Configurator, CONFIGURATORS)


def configurator_of(given: str | Configurator) -> Configurator:
    """The configurator that a name with options stands for; an object is refused if it is no configurator."""
    return CONFIGURATOR_PARTS.of(given)
