"""Parts of others: by import path, by entry point, as objects; and what is wrong with one in one line."""

from __future__ import annotations

import pickle
import re
import sys
from pathlib import Path

import pytest

from fairway import (
    Cluster,
    InputError,
    Job,
    Problem,
    Submission,
    TrainingOptions,
    allocate,
    check_policy,
    policy_of,
    schedule_of,
    simulate_training,
)
from fairway.allocate.policies import POLICIES
from fairway.allocate.registry import POLICY_PARTS
from fairway.options import options_of, text_of
from tests.parts import Halves, NoPolicy, Plain, Structural

PROBLEM = Problem.of(Cluster({"v100": 1}), [Job("a", {"v100": 1.0})])


def test_a_class_of_any_module_is_a_policy_with_its_options() -> None:
    assert policy_of("tests.parts:Halves") == Halves()
    assert policy_of(" tests.parts:Halves:part=0.25,agnostic,reference=v100 ") == Halves(0.25, True, "v100")
    assert allocate("tests.parts:Halves:part=0.25", PROBLEM).shares.tolist() == [[0.25]]


def test_the_options_of_a_class_that_is_no_dataclass_are_its_parameters() -> None:
    policy = policy_of("tests.parts:Plain:limit=0.5,loud,most=3")
    assert isinstance(policy, Plain)
    assert (policy.limit, policy.loud, policy.most) == (0.5, True, 3)
    assert [option.form for option in options_of(Plain)] == ["limit=VALUE", "loud", "most=VALUE"]


def test_a_function_is_no_part_and_is_not_called_to_find_that_out(tmp_path: Path) -> None:
    place = tmp_path / "made"
    with pytest.raises(InputError, match="policy 'os:mkdir' is a builtin_function_or_method, expected a class"):
        policy_of(f"os:mkdir:path={place}")
    assert not place.exists()


def test_an_object_of_a_module_and_one_of_the_caller_will_do() -> None:
    assert policy_of("tests.parts:READY") == Halves(part=0.25)
    mine = Halves(part=0.1)
    assert policy_of(mine) is mine
    check_policy(mine)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tests.no_such:Halves", "policy tests.no_such:Halves: no module 'tests.no_such'; start where it lies, or"),
        ("fif:agnostic", "policy fif:agnostic: no module 'fif'; .* ('fif' given, did you mean 'fifo'?)"),
        (
            "max-min-fairnes:agnostic",
            "policy 'max-min-fairnes' is not known, did you mean 'max-min-fairness'?; known: ",
        ),
        ("tests.parts:Halfs", "policy tests.parts:Halfs: 'tests.parts' has no 'Halfs', did you mean 'Halves'?"),
        ("tests.parts:Zzz", "policy tests.parts:Zzz: 'tests.parts' has no 'Zzz'; it has Allocation, ClassVar, "),
        (
            "tests.parts:NoPolicy",
            "policy 'tests.parts:NoPolicy' is no policy: it has no allocate; inherit from fairway.P",
        ),
        (
            "tests.parts:NUMBER",
            "policy 'tests.parts:NUMBER' is no policy: it has no name, allocate; inherit from fairway.Pol",
        ),
        (
            "tests.parts:Halves:prt=1",
            "policy 'tests.parts:Halves' has no option 'prt', did you mean 'part'?; options: ",
        ),
        (
            "tests.parts:Halves:part=x",
            "policy 'tests.parts:Halves': part: 'x' given, expected a number >= 0, as in '0.5",
        ),
        ("tests.parts:Plain", "policy 'tests.parts:Plain' needs limit=VALUE; write tests.parts:Plain:limit=VALUE"),
        ("tests.parts:Plain:limit=1,most=x", "most: 'x' given, expected a whole number >= 0"),
        ("tests.parts:Fails", "policy 'tests.parts:Fails' cannot be made: ZeroDivisionError: on purpose (.*parts.py"),
        ("tests/parts.py:Halves", "policy 'tests/parts.py' is not known; .*as module:Class"),
    ],
)
def test_what_is_wrong_is_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message).replace(r"\.\*", ".*")) as caught:
        policy_of(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("given", [NoPolicy(), Halves, None, 3])
def test_an_object_that_is_no_policy_is_refused(given: object) -> None:
    with pytest.raises(InputError, match=r"is no policy: it has no |give an object"):
        policy_of(given)  # type: ignore[arg-type]


def test_a_class_with_nothing_but_a_name_and_its_verb_is_a_policy_with_the_defaults_of_the_rest() -> None:
    for policy in (policy_of("tests.parts:Structural"), policy_of(Structural()), policy_of(policy_of(Structural()))):
        assert (policy.name, policy.agnostic, policy.space_sharing, policy.efficient) == (
            "structural",
            False,
            False,
            False,
        )
        assert allocate(policy, PROBLEM).shares.tolist() == allocate(Halves(), PROBLEM).shares.tolist()
        assert pickle.loads(pickle.dumps(policy)).name == "structural"
    check_policy(Structural())
    jobs = [Submission(0.0, Job("a", {"v100": 1.0}, steps_left=600.0))]
    assert simulate_training(jobs, Cluster({"v100": 1}), Structural(), TrainingOptions()).policy == "structural"


def test_every_policy_of_ours_says_what_engines_have_to_know() -> None:
    for name in POLICIES:
        policy = policy_of(name)
        assert {policy.agnostic, policy.space_sharing, policy.by_cost, policy.efficient} <= {True, False}
        assert policy_of(policy) is policy
        assert not hasattr(policy, "__dict__")  # slotted, although it inherits


def test_a_run_takes_a_policy_as_an_object_and_tells_its_options() -> None:
    jobs = [Submission(0.0, Job("a", {"v100": 1.0}, steps_left=600.0))]
    record = simulate_training(jobs, Cluster({"v100": 1}), Halves(part=0.5), TrainingOptions())
    assert record.policy == "halves"
    assert text_of(Halves(part=0.75, agnostic=True)) == "halves:part=0.75,agnostic"


def test_a_compat_run_refuses_a_policy_that_the_original_does_not_have() -> None:
    with pytest.raises(InputError, match="policy 'halves' is not one that runs as in the original"):
        simulate_training([], Cluster({"v100": 1}), Halves(), TrainingOptions(compat="gavel"))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An installed package that offers two policies and a placer under names of its own, and one that is broken."""
    information = tmp_path / "their_package-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(
        "[fairway.policies]\ntheirs = their_module:Theirs\nfifo = their_module:Theirs\nbroken = their_module:Gone\n"
        "[fairway.placers]\ntheir-placer = fairway.place.placers.heft:Heft\n"
    )
    (tmp_path / "their_module.py").write_text(
        "from tests.parts import Halves\nclass Theirs(Halves):\n    '''Does as its authors like.'''\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "their_module", raising=False)
    return "their-package"


@pytest.mark.usefixtures("package")
def test_installed_packages_offer_parts_by_name_but_none_of_ours() -> None:
    assert type(policy_of("theirs:part=0.25")).__name__ == "Theirs"
    assert type(policy_of("fifo")).__name__ == "Fifo"
    assert list(POLICY_PARTS.installed()) == ["broken", "theirs"]
    with pytest.raises(InputError, match="policy 'their' is not known, did you mean 'theirs'"):
        policy_of("their")
    with pytest.raises(InputError, match="policy 'broken' of package 'their-package' cannot be loaded: AttributeError"):
        policy_of("broken")
    assert schedule_of("front+their-placer").placer.name == "heft"
    assert schedule_of("their-placer").placer.name == "heft"
