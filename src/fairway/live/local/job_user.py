"""As which user of this machine a job runs, where that is not the user of the agent."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass

_INHERITED = {"PATH", "LANG", "LANGUAGE", "TZ", "TERM", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV"}
_INHERITED_KINDS = ("LC_", "CUDA_", "NVIDIA_")


@dataclass(frozen=True, slots=True)
class JobUser:
    """A user with the groups that it belongs to."""

    name: str
    uid: int
    gid: int
    groups: list[int]
    home: str
    shell: str

    @classmethod
    def named(cls, name: str) -> JobUser:
        """The user of this name; a `KeyError` or `PermissionError` says why jobs cannot run as it."""
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            raise KeyError("there is no such user on this machine") from None
        if os.geteuid() != 0:
            raise PermissionError("only root can run jobs as another user")
        groups = os.getgrouplist(found.pw_name, found.pw_gid)
        return cls(found.pw_name, found.pw_uid, found.pw_gid, groups, found.pw_dir, found.pw_shell)

    def environment(self, outside: Mapping[str, str]) -> dict[str, str]:
        """What the user inherits of the surroundings of the agent, which may hold secrets that are not for jobs."""
        inherited = {
            name: value for name, value in outside.items() if name in _INHERITED or name.startswith(_INHERITED_KINDS)
        }
        return {**inherited, "HOME": self.home, "USER": self.name, "LOGNAME": self.name, "SHELL": self.shell}

    def become(self) -> None:
        """Give up the rights of this process for those of the user, for good."""
        os.setgroups(self.groups)
        os.setresgid(self.gid, self.gid, self.gid)
        os.setresuid(self.uid, self.uid, self.uid)
