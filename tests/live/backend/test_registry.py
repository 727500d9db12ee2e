"""Backends by name."""

from __future__ import annotations

import pytest

from fairway.errors import InputError
from fairway.live.backend.registry import BACKENDS, backend_named
from fairway.live.local.backend import LocalBackend


def test_every_name_stands_for_a_backend() -> None:
    assert backend_named("local") is LocalBackend
    assert all(callable(backend_named(name)) for name in BACKENDS)


def test_a_name_that_is_not_known_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="backend 'locale' is not known, did you mean 'local'"):
        backend_named("locale")
