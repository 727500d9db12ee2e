"""Arrays and matrices: which jobs a description stands for, and that none of a billion is ever made."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.errors import InputError
from fairway.jobs.arrays import MOST_JOBS, ArrayIndexes
from fairway.jobs.description import job_of, parse_job, parse_jobs
from fairway.jobs.expansion import count_of, expanded
from fairway.live.training.start_command import program_of


@pytest.mark.parametrize(
    ("text", "indexes", "limit", "written"),
    [
        ("0-3", [0, 1, 2, 3], None, "0-3"),
        ("0-9:4", [0, 4, 8], None, "0-8:4"),
        ("7", [7], None, "7"),
        (" 1, 4 ,7-8 % 2", [1, 4, 7, 8], 2, "1,4,7-8%2"),
        ("0-999", list(range(1000)), None, "0-999"),
        (5, [5], None, "5"),
    ],
)
def test_indexes_are_read_as_slurm_users_write_them(
    text: object, indexes: list[int], limit: int | None, written: str
) -> None:
    array = ArrayIndexes.read(text)
    assert (list(array), array.limit, str(array)) == (indexes, limit, written)
    assert ArrayIndexes.read(written) == array


@given(st.text(alphabet="0123456789-,:% ", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        array = ArrayIndexes.read(text)
    except InputError:
        return
    assert 1 <= len(array) <= MOST_JOBS
    assert list(ArrayIndexes.read(str(array))) == list(array)


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("array: 0-1000000000", "1000000001 jobs; at most 1000"),
        ("array: 0-1000", "1001 jobs; at most 1000"),
        ("array: 9-1", "the smaller index first"),
        ("array: 0-9:0", "steps of at least 1"),
        ("array: 0-9%0", "expected indexes such as"),
        ("array: 1,1", "an index twice"),
        ("array: true", "expected indexes such as"),
        ("array: [1]", "expected indexes such as"),
        ("array: -1", "expected indexes such as"),
        (f"array: '{'1,' * 9000}'", "expected indexes such as"),
        ("matrix: {A: []}", "expected a list of values"),
        ("matrix: {}", "expected lists of values"),
        ("matrix: {A: [null]}", "no value given"),
        ("matrix: {FAIRWAY_RANK: [1]}", "set by Fairway itself"),
        ("matrix: {A: [1], B: [1]}\nenvs: {B: 2}", "'B' given, which envs has as well"),
        ("matrix: {A: [1]}\narray: 0-1", "given beside matrix"),
        ("matrix: {" + ", ".join(f"A{number}: [1, 2]" for number in range(30)) + "}", "at most 1000"),
    ],
)
def test_what_is_wrong_is_refused_at_once(field: str, said: str) -> None:
    began = time.process_time()
    with pytest.raises(InputError) as refused:
        parse_job(f"run: a\n{field}\n", "job")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert time.process_time() - began < 2.0


def test_the_jobs_of_an_array_have_a_name_and_an_index_of_their_own() -> None:
    job = parse_job("run: a\nname: train\narray: 0-9:3%2\nenvs: {A: b}\n", "job")
    members = expanded(job)
    assert count_of(job) == len(members) == 4
    assert [one.job.document() for one in members][1] == {
        "run": "a", "name": "train-3", "array": "3%2", "envs": {"A": "b"},
    }  # fmt: skip
    assert [(one.array_name, one.position) for one in members] == [("train", number) for number in range(4)]
    assert [program_of(one.job).envs for one in members] == [
        {"A": "b", "FAIRWAY_ARRAY_INDEX": str(index)} for index in (0, 3, 6, 9)
    ]
    for one in members:  # what is stored stands for itself
        assert [again.job for again in expanded(job_of(one.job.document(), "job"))] == [one.job]


def test_a_matrix_is_the_product_of_its_lists() -> None:
    members = expanded(parse_job("run: a\nmatrix: {LR: [0.1, 1e-2], FAST: [true, false]}\n", "job"))
    assert [one.job.envs for one in members] == [
        {"LR": lr, "FAST": fast} for lr in ("0.1", "0.01") for fast in ("true", "false")
    ]
    assert [one.job.name for one in members] == ["array-0", "array-1", "array-2", "array-3"]
    assert all("matrix" not in one.job.document() for one in members)


def test_a_name_that_leaves_no_room_for_the_index_is_refused() -> None:
    assert expanded(parse_job(f"run: a\narray: 0-9\nname: {'n' * 61}\n", "job"))[9].job.name == f"{'n' * 61}-9"
    with pytest.raises(InputError, match="too long for an array"):
        expanded(parse_job(f"run: a\narray: 0-9\nname: {'n' * 62}\n", "job"))


def test_documents_are_read_in_their_order() -> None:
    jobs = parse_jobs("run: a\n---\n# nothing\n---\nrun: b\nresources: {accelerators: [A100, V100]:2}\n", "jobs.yaml")
    assert [job.run for job in jobs] == ["a", "b"]
    assert [job.run for job in parse_jobs('[{"run": "a"}, {"run": "b"}]', "jobs")] == ["a", "b"]
    for text, said in [
        ("run: a\n---\nrun: b\nx: 1\n", "jobs.yaml, document 2: x: no such field"),
        ("run: a\n---\n[1]\n", "jobs.yaml, document 2: the document: a list of 1 given"),
        ("run: a\n---\nrun: *x\n", "jobs.yaml: line 3: an alias"),
        ("--- \n---\n", "jobs.yaml: empty"),
    ]:
        with pytest.raises(InputError) as refused:
            parse_jobs(text, "jobs.yaml")
        assert str(refused.value).startswith(said)
