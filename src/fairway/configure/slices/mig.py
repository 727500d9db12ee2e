"""Into which instances NVIDIA's MIG cuts a GPU, and where each may lie: tables of facts, none of them ours.

A GPU has compute slices and memory slices (seven and eight, or four and four). An instance of a profile takes so many
of both, and its memory slices begin at one of a few places; two instances share none. This is what
`nvidia-smi mig -lgip` (profiles) and `-lgipp` (places, as `{starts}:size`) print, published in

- the MIG user guide, docs.nvidia.com/datacenter/tesla/mig-user-guide: "Supported MIG Profiles" for the slices and the
  number of instances of each profile, "Getting Started with MIG" for the places on an A100;
- github.com/GoogleCloudDataproc/initialization-actions, `gpu/install_gpu_driver.sh`: the places on an H100, which are
  the same;
- github.com/Summer-Lo/Docker_configuration, `000-MIG/README.md`: the places on an A30;
- github.com/NVIDIA/go-nvml, `pkg/nvml/mock/internal/shared/gpus/b200.go` (663b8558): the places on a B200, as NVIDIA's
  own stand-in for it has them, not as a machine printed them. They are those of an A100. For 1g.45gb, which takes two
  of the eight memory slices and of which the guide allows four, the stand-in has places of one slice; ours are the
  four that do not overlap.

Left out: profiles with media extensions (`+me`), which take the same slices as those without, and GPUs whose places we
did not find published.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairway.errors import InputError
from fairway.options import nearest


@dataclass(frozen=True, slots=True)
class MigProfile:
    """A size of instance: its name, the slices that it takes, and where its memory slices may begin."""

    name: str
    compute: int
    memory: int
    starts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MigDevice:
    """A GPU that can be cut: its slices, and the profiles in order of size."""

    name: str
    compute: int
    memory: int
    profiles: tuple[MigProfile, ...]

    def profile(self, name: str) -> MigProfile:
        """One of them by its name, as in `3g.20gb`."""
        found = next((one for one in self.profiles if one.name == name), None)
        if found is None:
            names = [one.name for one in self.profiles]
            raise InputError(f"profile: '{name}' given, but a {self.name} has {', '.join(names)}{nearest(name, names)}")
        return found


def _of_seven(name: str, *names: str) -> MigDevice:
    """The GPUs with seven compute and eight memory slices differ in how much memory a slice has."""
    small, wide, two, three, four, whole = names
    return MigDevice(
        name,
        7,
        8,
        (
            MigProfile(small, 1, 1, (0, 1, 2, 3, 4, 5, 6)),
            MigProfile(wide, 1, 2, (0, 2, 4, 6)),
            MigProfile(two, 2, 2, (0, 2, 4)),
            MigProfile(three, 3, 4, (0, 4)),
            MigProfile(four, 4, 4, (0,)),
            MigProfile(whole, 7, 8, (0,)),
        ),
    )


A100_40GB = _of_seven("a100-40gb", "1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb")
A100_80GB = _of_seven("a100-80gb", "1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
H100_80GB = _of_seven("h100-80gb", "1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
B200_180GB = _of_seven("b200-180gb", "1g.23gb", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb")
A30 = MigDevice(
    "a30",
    4,
    4,
    (
        MigProfile("1g.6gb", 1, 1, (0, 1, 2, 3)),
        MigProfile("2g.12gb", 2, 2, (0, 2)),
        MigProfile("4g.24gb", 4, 4, (0,)),
    ),
)
DEVICES = {device.name: device for device in (A30, A100_40GB, A100_80GB, H100_80GB, B200_180GB)}


def mig_device(name: str) -> MigDevice:
    """The device of a name, as in `a100-40gb`."""
    if name not in DEVICES:
        raise InputError(f"device: '{name}' given, expected one of {', '.join(DEVICES)}{nearest(name, DEVICES)}")
    return DEVICES[name]
