"""The generator, against the numbers that the original draws, and the short form of its options."""

from __future__ import annotations

import math
from collections import Counter
from itertools import islice

import pytest

from fairway.errors import InputError
from fairway.profiles import IsolatedRate, ThroughputTable, catalog
from fairway.traces import JOB_TABLE, GeneratorOptions, TraceJob, generate, parse_generate, parse_trace
from tests.figures import gavel_rates, gavel_trace

# What the original generator draws for seed 0 and 900 s between arrivals.
SINGLE = """\
0.000 ResNet-18 (batch size 64) 1 68344.350 1646636.276
244.586 Transformer (batch size 16) 1 31016.609 343170.469
951.775 Recommendation (batch size 2048) 1 2146.609 16034.378
1367.543 Recommendation (batch size 8192) 1 7386.675 20989.313
2201.068 LM (batch size 5) 1 6858.698 748740.885"""
MULTI = SINGLE.replace("1 68344.350 1646636.276", "8 68344.350 17484476.261").replace(
    "1 6858.698 748740.885", "4 6858.698 869104.869"
)


def printed(job: TraceJob) -> str:
    return f"{job.arrival:.3f} {job.job_type} {job.scale_factor} {job.duration_seconds:.3f} {job.total_steps:.3f}"


@pytest.mark.parametrize(("multi_gpu", "expected"), [(False, SINGLE), (True, MULTI)])
def test_the_draws_are_those_of_the_original_to_every_printed_digit(multi_gpu: bool, expected: str) -> None:
    jobs = generate(GeneratorOptions(900, multi_gpu=multi_gpu), gavel_rates())
    assert "\n".join(map(printed, islice(jobs, 5))) == expected


def test_the_catalog_gives_the_same_jobs_with_steps_to_four_digits() -> None:
    jobs = generate(parse_generate("jobs=5,rate=4"), catalog.builtin())
    for job, line in zip(jobs, SINGLE.splitlines(), strict=True):
        assert printed(job).rsplit(" ", 1)[0] == line.rsplit(" ", 1)[0]
        assert job.total_steps == pytest.approx(float(line.rsplit(" ", 1)[1]), rel=5e-4)


@pytest.mark.parametrize(("seed", "lam", "gangs"), [(7, 1500, "single_120"), (8, 1500, "single_120")])
def test_the_gaps_are_those_of_traces_written_by_the_original(seed: int, lam: int, gangs: str) -> None:
    name = f"gen_{gangs}_lam{lam}_seed{seed}"
    trace = parse_trace(gavel_trace(name), name)
    # The original's trace writer seeds its gaps with seed + 1, its simulator with seed + 3; the file has whole seconds.
    jobs = generate(GeneratorOptions(lam, jobs=len(trace.jobs), seed=seed - 2), catalog.builtin())
    assert [math.floor(job.arrival) for job in jobs] == [job.arrival for job in trace.jobs]


def test_the_table_has_26_types_of_which_19_can_be_distributed() -> None:
    assert len(JOB_TABLE) == len({job_type.name for job_type in JOB_TABLE}) == 26
    assert sum(job_type.distributable for job_type in JOB_TABLE) == 19
    table = catalog.builtin()
    for job_type in JOB_TABLE:
        assert table.scale_factors(job_type.name) == ((1, 2, 4, 8) if job_type.distributable else (1,))


def test_the_distributions_are_the_published_ones() -> None:
    jobs = list(generate(parse_generate("jobs=20000,rate=6,multi-gpu,multi-priority,slos,seed=3"), catalog.builtin()))
    n = len(jobs)
    gangs = Counter(job.scale_factor for job in jobs)
    assert {s: gangs[s] / n for s in gangs} == pytest.approx({1: 0.7, 2: 0.1, 4: 0.15, 8: 0.05}, abs=0.01)
    assert sum(job.weight == 5 for job in jobs) / n == pytest.approx(0.2, abs=0.01)
    assert Counter(job.slo for job in jobs).keys() == {1.2, 2.0, 10.0}
    minutes = [(job.duration_seconds or 0) / 60 for job in jobs]
    assert 10**1.5 <= min(minutes) < max(minutes) <= 10**4
    assert sum(length > 1000 for length in minutes) / n == pytest.approx(0.2, abs=0.01)
    assert jobs[-1].arrival / (n - 1) == pytest.approx(600, rel=0.02)
    distributable = {job_type.name for job_type in JOB_TABLE if job_type.distributable}
    assert all(job.job_type in distributable for job in jobs if job.scale_factor > 1)


def test_priorities_and_slos_do_not_disturb_the_other_draws_before_them() -> None:
    table = catalog.builtin()
    plain, slos = (list(generate(parse_generate(f"jobs=50,rate=1{more}"), table)) for more in ("", ",slos"))
    assert [(job.arrival, job.job_type, job.total_steps) for job in plain] == [
        (job.arrival, job.job_type, job.total_steps) for job in slos
    ]
    assert all(job.slo is None for job in plain)


def test_the_stream_never_ends_and_repeats_exactly() -> None:
    options = parse_generate("lam=60,multi-gpu,seed=5")
    assert options.jobs is None
    first, second = (list(islice(generate(options, catalog.builtin()), 3000)) for _ in range(2))
    assert first == second
    assert [job.id for job in first[:3]] == ["0", "1", "2"]


def test_all_jobs_can_arrive_at_once_with_one_duration() -> None:
    jobs = list(generate(parse_generate("jobs=20, lam=0, duration=60"), catalog.builtin()))
    assert {job.arrival for job in jobs} == {0.0}
    assert {job.duration_seconds for job in jobs} == {60.0}


def test_a_table_without_the_reference_accelerator_is_refused() -> None:
    with pytest.raises(InputError, match="has no rate on 'h100'"):
        next(generate(parse_generate("rate=1,reference=h100"), catalog.builtin()))


def test_a_job_that_cannot_run_on_the_reference_accelerator_has_no_steps() -> None:
    table = ThroughputTable(tuple(IsolatedRate(t.name, 1, "v100", 0.0) for t in JOB_TABLE), source="zeros")
    with pytest.raises(InputError, match=r"cannot run on 1 × 'v100' in the table \(zeros\)"):
        next(generate(parse_generate("rate=1"), table))


def test_the_short_form_has_every_option() -> None:
    text = "jobs=500,rate=4.0,multi-gpu,multi-priority,slos,duration=3600,reference=p100,seed=7"
    assert parse_generate(text) == GeneratorOptions(900.0, 500, True, True, True, 3600.0, "p100", 7)
    assert parse_generate("rate=4") == GeneratorOptions(900.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' given, expected one of jobs, rate, lam"),
        ("job=5,rate=4", r"'job=5' given, expected one of .* \(did you mean 'jobs'\?\), as in 'jobs=500,rate=4.0"),
        ("rate=4,multi-gpu=1", "'multi-gpu=1' given, expected no value"),
        ("rate", "'rate' given, expected a value, rate=…"),
        ("rate=", "'rate=' given, expected a value, rate=…"),
        ("rate=4,rate=5", "'rate' given twice; keep one"),
        ("rate=4,slos,slos", "'slos' given twice; keep one"),
        ("jobs=5", "expected either rate=JOBS_PER_HOUR or lam=SECONDS"),
        ("rate=4,lam=900", "expected either rate=JOBS_PER_HOUR or lam=SECONDS"),
        ("rate=0", "rate=0 given, expected jobs per hour above 0"),
        ("rate=nan", "rate=nan given, expected jobs per hour above 0"),
        ("rate=1e-320", "rate=1e-320 given, expected jobs per hour above 0"),
        ("rate=fast", "rate=fast given, expected a number"),
        ("lam=-1", "lam=-1.0 given, expected seconds of at least 0"),
        ("lam=0", "no jobs=COUNT given, but lam=0"),
        ("rate=4,jobs=0", "jobs=0 given, expected a whole number of at least 1"),
        ("rate=4,jobs=1.5", "jobs=1.5 given, expected a whole number"),
        ("rate=4,seed=x", "seed=x given, expected a whole number"),
        ("rate=4,duration=0", "duration=0.0 given, expected seconds above 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^generate: {message}"):
        parse_generate(text)
