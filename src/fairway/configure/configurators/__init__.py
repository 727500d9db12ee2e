"""Every configurator, by its name: one small file each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from fairway.configure.configurator import Configurator
from fairway.configure.configurators.aquatope import Aquatope
from fairway.configure.configurators.clockwork import Clockwork
from fairway.configure.configurators.esg import Esg
from fairway.configure.configurators.fast_gshare import FastGShare
from fairway.configure.configurators.front import FrontConfigurator
from fairway.configure.configurators.inferline import InferLine
from fairway.configure.configurators.infless import Infless
from fairway.configure.configurators.nexus import Nexus
from fairway.configure.configurators.orion import Orion
from fairway.configure.configurators.shepherd import Shepherd

CONFIGURATORS: Mapping[str, Callable[..., Configurator]] = MappingProxyType(
    {
        each.name: each
        for each in (
            Esg,
            FrontConfigurator,
            Infless,
            FastGShare,
            Orion,
            Aquatope,
            Nexus,
            Clockwork,
            Shepherd,
            InferLine,
        )
    }
)
"""All configurators, by name."""

__all__ = ["CONFIGURATORS"]
