"""What a job inherits that runs as another user, and who may run jobs so."""

from __future__ import annotations

import os
import pwd

import pytest

from fairway.live.local.job_user import JobUser

NOBODY = JobUser("nobody", 65534, 65534, [65534, 7], "/nonexistent", "/bin/false")


def test_secrets_of_the_agent_are_not_for_jobs() -> None:
    outside = {
        "PATH": "/bin", "LANG": "C", "LC_ALL": "C.UTF-8", "CUDA_HOME": "/cuda", "NVIDIA_X": "1", "TZ": "UTC",
        "FAIRWAY_TOKEN": "secret", "AWS_KEY": "secret", "HOME": "/root", "USER": "root", "MYLC_": "x",
    }  # fmt: skip
    assert NOBODY.environment(outside) == {
        "PATH": "/bin", "LANG": "C", "LC_ALL": "C.UTF-8", "CUDA_HOME": "/cuda", "NVIDIA_X": "1", "TZ": "UTC",
        "HOME": "/nonexistent", "USER": "nobody", "LOGNAME": "nobody", "SHELL": "/bin/false",
    }  # fmt: skip


def test_a_user_is_looked_up_with_all_of_its_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    known = pwd.struct_passwd(("ann", "x", 1001, 1002, "", "/home/ann", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwnam", {"ann": known}.__getitem__)
    monkeypatch.setattr(os, "getgrouplist", lambda name, group: [group, 50] if name == "ann" else [])
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert JobUser.named("ann") == JobUser("ann", 1001, 1002, [1002, 50], "/home/ann", "/bin/sh")
    with pytest.raises(KeyError, match="there is no such user on this machine"):
        JobUser.named("bob")
    monkeypatch.setattr(os, "geteuid", lambda: 1001)
    with pytest.raises(PermissionError, match="only root can run jobs as another user"):
        JobUser.named("ann")


def test_rights_are_given_up_for_good_and_the_groups_first(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[object, ...]] = []
    for name in ("setgroups", "setresgid", "setresuid"):
        monkeypatch.setattr(os, name, lambda *given, name=name: done.append((name, *given)))
    NOBODY.become()
    assert done == [
        ("setgroups", [65534, 7]), ("setresgid", 65534, 65534, 65534), ("setresuid", 65534, 65534, 65534)
    ]  # fmt: skip
