"""The CSV form of a throughput table: what is written is read back, and bad rows are named by line."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.errors import InputError
from fairway.magnitudes import FACTORS
from fairway.profiles import IsolatedRate, PairRate, ThroughputTable, format_csv, parse_csv, read_table, write_csv

HEADER = "job_type,scale_factor,accelerator,steps_per_second"
FULL_HEADER = f"{HEADER},spread_steps_per_second,partner,partner_steps_per_second"

names = st.text(
    st.characters(exclude_categories=("C", "Z"), include_characters=string.ascii_letters + " ,'\"#"), min_size=1
).filter(lambda name: name == name.strip())
rates = st.just(0.0) | st.floats(FACTORS.least, FACTORS.most)


@st.composite
def tables(draw: st.DrawFn) -> ThroughputTable:
    keys = draw(
        st.lists(
            st.tuples(names, st.integers(1, 3), st.sampled_from(["v100", "k,80"])), min_size=1, max_size=8, unique=True
        )
    )
    isolated = [
        IsolatedRate(job_type, s, accelerator, draw(rates), draw(st.none() | rates) if s > 1 else None)
        for job_type, s, accelerator in keys
    ]
    fits = [(a, b) for i, a in enumerate(keys) for b in keys[i + 1 :] if a[1:] == b[1:]]
    shared = [PairRate(a, b, s, accelerator, draw(rates), draw(rates)) for (a, s, accelerator), (b, _, _) in fits]
    job_type, s, accelerator = keys[0]
    rate = draw(rates)
    shared.append(PairRate(job_type, job_type, s, accelerator, rate, rate))
    return ThroughputTable(tuple(isolated), tuple(shared), source=draw(names))


@given(tables())
def test_a_table_survives_the_round_trip_through_csv(table: ThroughputTable) -> None:
    again = parse_csv(format_csv(table), "again.csv")
    assert again.isolated == table.isolated
    assert again.shared == table.shared
    assert again.source == " ".join(table.source.split())
    assert format_csv(again) == format_csv(table)


@given(st.text())
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    for content in (text, f"{HEADER}\n{text}", f"{FULL_HEADER}\na,1,v100,{text}"):
        refused = ""
        try:
            parse_csv(content, "x.csv")
        except InputError as error:
            refused = str(error)
        assert len(refused.splitlines()) <= 1


def test_a_written_file_is_read_back(tmp_path: Path) -> None:
    table = ThroughputTable((IsolatedRate("a", 2, "v100", 0.1, 0.3), IsolatedRate("é", 1, "k80", 1e-9)), source="us")
    write_csv(table, tmp_path / "rates.csv")
    assert read_table(tmp_path / "rates.csv") == table


def test_columns_may_stand_in_any_order_with_spaces_and_blank_lines_around() -> None:
    text = '\n accelerator, job_type ,steps_per_second,scale_factor\r\nv100, "lm, big",3.5, 2\n\n ,,,\n'
    table = parse_csv(text, "x.csv")
    assert table.isolated == (IsolatedRate("lm, big", 2, "v100", 3.5),)


def test_the_comments_above_the_header_are_the_source() -> None:
    table = parse_csv(f"# measured by us,\n#  in March\n{HEADER}\n#1,1,v100,2\n", "x.csv")
    assert table.source == "measured by us, in March"
    assert table.job_types == ("#1",)


def test_without_comments_the_file_is_the_source() -> None:
    assert parse_csv(f"{HEADER}\nlm,1,v100,2\n", "x.csv").source == "x.csv"


def test_pairs_may_stand_above_their_members() -> None:
    table = parse_csv(f"{FULL_HEADER}\na,1,v100,2,,b,3\na,1,v100,4,,,\nb,1,v100,6,,,\n", "x.csv")
    assert table.pair_rates("a", "b", 1) == {"v100": (2.0, 3.0)}
    assert table.rates("a", 1) == {"v100": 4.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.csv, line 0: no column job_type, scale_factor, accelerator, steps_per_second in the header"),
        ("# only\n# comments", "x.csv, line 2: no column job_type"),
        ("job_type,accelerator\n", "x.csv, line 1: no column scale_factor, steps_per_second in the header"),
        (f"# source\n{HEADER},rate\n", "x.csv, line 2: column 'rate' given, expected one of job_type, "),
        (f"{HEADER},job_type\n", "x.csv, line 1: column 'job_type' given twice"),
        (f"{HEADER}\n", "x.csv: no rates given"),
        (f"{FULL_HEADER}\na,1,v100,2,,a,2\n", "x.csv: no rates given, expected at least one row without a partner"),
    ],
)
def test_a_header_that_cannot_be_used_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        parse_csv(text, "x.csv")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("lm,1,v100", "3 cells given, expected 7"),
        ("lm,one,v100,2,,,", "scale_factor: 'one' given, expected a whole number"),
        ("lm,1.0,v100,2,,,", "scale_factor: '1.0' given, expected a whole number"),
        ("lm,0,v100,2,,,", "scale_factor: 0 given"),
        ("lm,1,v100,,,,", "steps_per_second: '' given, expected steps per second"),
        ("lm,1,v100,fast,,,", "steps_per_second: 'fast' given, expected steps per second"),
        ("lm,1,v100,-2,,,", "steps_per_second: -2.0 given, expected a number of at least 0"),
        ("lm,1,v100,nan,,,", "steps_per_second: nan given"),
        (",1,v100,2,,,", "job_type: '' given"),
        ("lm,1,,2,,,", "accelerator: '' given"),
        ("lm,2,v100,2,slow,,", "spread_steps_per_second: 'slow' given"),
        ("lm,1,v100,2,1,,", "spread_steps_per_second: 1.0 given with a scale_factor of 1"),
        ("lm,2,v100,2,1,a,3", "spread_steps_per_second: '1' given for a pair, expected none"),
        ("a,1,v100,2,,a,", "partner 'a' given without partner_steps_per_second"),
        ("a,1,v100,2,,,2", "partner: '' given"),
        ("a,1,v100,2,,a,x", "partner_steps_per_second: 'x' given, expected steps per second"),
        ("a,1,v100,2,,b,3", r"no rate of 'b' \(scale factor 1\) alone on 'v100'"),
        ("a,1,v100,2,,,", r"a second rate of 'a' \(scale factor 1\) on 'v100' given \(first at x.csv, line 3\)"),
        ('"a,1,v100,2,,,', "not valid CSV: "),
    ],
)
def test_a_row_that_cannot_be_used_is_refused_with_its_line(row: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^x.csv, line 4: {message}"):
        parse_csv(f"# source\n{FULL_HEADER}\na,1,v100,4,,,\n{row}\n", "x.csv")
