"""Formats found by content, and what happens to files that have none of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairway.errors import InputError
from fairway.traces import FORMATS, Trace, parse_trace, read_trace

GAVEL = "A3C\trun\t--steps\t0\t900\t0\t1"
HEADERS = {
    "helios": "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue",
    "openb": "name,cpu_milli,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time",
    "pai": "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type",
    "pollux": "name,time,application,num_replicas,batch_size",
}
HEADS = {
    **HEADERS,
    "gavel": GAVEL,
    "philly": '[{"status": "Pass", "vc": "v", "jobid": "j", "attempts": [], "submitted_time": null, "user": "u"}]',
    "swf": "; Version: 2.2\n1 0 5 60 4 -1 -1 8 3600 -1 1 3 1 -1 -1 -1 -1 -1",
}


@pytest.mark.parametrize(("name", "head"), HEADS.items())
def test_each_format_is_recognised_by_no_other(name: str, head: str) -> None:
    assert [key for key, known in FORMATS.items() if known.recognises(head)] == [name]


def test_a_format_can_be_forced_by_name(tmp_path: Path) -> None:
    path = tmp_path / "jobs.trace"
    path.write_text(GAVEL)
    assert read_trace(path) == read_trace(str(path), "gavel")
    with pytest.raises(InputError, match="7 columns given, expected 18"):
        read_trace(path, "swf")
    with pytest.raises(
        InputError, match=r"^trace format 'Pollox' is not known, did you mean 'pollux'\?; known: gavel, "
    ):
        read_trace(path, "Pollox")
    with pytest.raises(
        InputError, match=r"^trace format '\?' is not known; known: gavel, [a-z, ]+; or a class of yours"
    ):
        read_trace(path, "?")


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "jobs.trace"
    path.write_bytes(b"\xef\xbb\xbf" + f"{GAVEL}\r\n{GAVEL}\r\n".encode())
    assert [job.job_type for job in read_trace(path).jobs] == ["A3C", "A3C"]


def test_an_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"^x: not in a known trace format; the known formats are gavel") as caught:
        parse_trace("sn,cpu_milli,memory_mib,gpu,model\n", "x")
    assert all(name in str(caught.value) for name in FORMATS)
    with pytest.raises(InputError, match=r"^x: empty, expected a trace$"):
        parse_trace(" \n", "x")


def test_a_file_that_is_not_there_or_not_text_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.trace: cannot be read: No such file or directory$"):
        read_trace(tmp_path / "none.trace")
    with pytest.raises(InputError, match=r"cannot be read: Is a directory$"):
        read_trace(tmp_path)
    (tmp_path / "x.gz").write_bytes(b"\x1f\x8b\x08\xff")
    with pytest.raises(InputError, match=r"x.gz: packed by gzip, but cannot be unpacked: "):
        read_trace(tmp_path / "x.gz")


def outcome_of(text: str, format: str | None = None) -> Trace | str:  # noqa: A002
    try:
        return parse_trace(text, "x", format)
    except InputError as error:
        return str(error)


cells = st.one_of(
    st.sampled_from(["", "1", "0", "-1", "nan", "1e400", "2.5", "None", "Terminated", '"', "V100|", "A3C"]),
    st.text(max_size=6),
)
tables = st.builds(
    lambda rows, separator, head: head + "\n".join(separator.join(row) for row in rows),
    st.lists(st.lists(cells, max_size=19), max_size=6),
    st.sampled_from(["\t", ",", " "]),
    st.sampled_from(["", "[", *(f"{head}\n" for head in HEADS.values())]),
)
noise = st.one_of(st.text(), tables, st.text(alphabet='[]{}",:1ajobid\n\\u'))


@settings(max_examples=300)
@given(text=noise, format=st.sampled_from([None, *FORMATS]))
@example(text="\x00", format="gavel")
@example(text='[{"jobid": "\\ud800"}]', format="philly")
def test_any_text_gives_a_trace_or_one_line_that_says_why_not(text: str, format: str | None) -> None:  # noqa: A002
    outcome = outcome_of(text, format)
    if isinstance(outcome, Trace):
        assert "\n" not in outcome.summary()
        assert outcome.jobs[0].arrival <= outcome.jobs[-1].arrival
    else:
        assert "\n" not in outcome
        assert outcome.startswith("x")


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 10**7), st.integers(0, 9), st.sampled_from(["460", "1000", "x"]), st.integers(0, 99)),
        min_size=1,
        max_size=30,
    )
)
def test_no_row_is_lost_and_arrivals_count_from_the_first(rows: list[tuple[int, int, str, int]]) -> None:
    lines = [
        f"p{i},1,{gpus},{milli},,LS,Running,{start},{start + length},{start}"
        for i, (start, gpus, milli, length) in enumerate(rows)
    ]
    trace = outcome_of("\n".join([HEADERS["openb"], *lines]))
    if isinstance(trace, str):
        assert "no job could be read (line 2: " in trace
        return
    ids = {job.id for job in trace.jobs} | {f"p{row.line - 2}" for row in trace.skipped}
    assert ids == {f"p{i}" for i in range(len(rows))}
    assert len(trace.jobs) + len(trace.skipped) == len(rows)
    assert trace.jobs[0].arrival == 0
    starts = sorted(float(rows[int(job.id[1:])][0]) for job in trace.jobs)
    assert [job.arrival for job in trace.jobs] == [start - starts[0] for start in starts]
