"""The two sentences on what several ranks bring: the exchange in each framework, and how many contenders shorten a step."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from reading import Page
from recorded import view_of
from test_scaling import SCRIPTS, as_kind, run

from steelyard.analysis import scaling, scaling_lines, strategies
from steelyard.analysis.scaling import Share
from steelyard.report import page
from steelyard.statistics.intervals import Ratio
from steelyard_worker import strategy_kinds

SHORTER = "a step shorter than it is in one process of the same framework"


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    return view_of(run(tmp_path_factory.mktemp("runs"), SCRIPTS))


@pytest.fixture
def row(view):
    """Return a function: a row of `copies:2` with this title, share of the exchange, speed-up and kind."""
    (comparison,) = view.comparisons
    (known,) = [each for each in scaling.scaled(comparison) if each.contender.case.strategy == "copies:2"]

    def made(title="PyTorch, ddp:2", exchange=None, speed_up=None, kind="processes"):
        contender = replace(known.contender, title=title, title_parts=tuple(title.split(", ")))
        return replace(known, contender=contender, exchange=exchange, speed_up=speed_up, kind=kind)

    return made


def share(value, enough=True):
    return Share(value, value - 0.1, value + 0.1, enough)


def test_the_exchange_is_said_for_each_framework(row):
    rows = [
        row("JAX, mesh:2", share(0.21)),
        row("JAX, shard-map:2", share(0.08)),
        row("JAX, distributed:2", share(0.6)),
        row("PyTorch, ddp:2", share(0.112)),
        row("MXNet, single:1", kind="single"),
    ]
    assert scaling_lines.in_short(rows) == [
        "Of a step, the exposed exchange takes 8 % (shard-map:2) to 60 % (distributed:2) in JAX and 11 % [1 %, 21 %] (ddp:2) in PyTorch."
    ]


def test_an_exchange_after_few_rounds_is_there_and_marked(row):
    (alone,) = scaling_lines.in_short([row(exchange=share(0.985, enough=False))])
    assert alone == "Of a step, the exposed exchange takes 98 % (ddp:2, not enough rounds) in PyTorch."
    (both,) = scaling_lines.in_short([row(exchange=share(0.985, enough=False)), row("PyTorch, fsdp:2", share(0.3))])
    assert both == "Of a step, the exposed exchange takes 30 % (fsdp:2) to 98 % (ddp:2, not enough rounds) in PyTorch."


@pytest.mark.parametrize(
    ("intervals", "sentence"),
    [
        ([(1.1, 2.0), (1.5, 1.8)], f"Of 2 trainings over several parts, 2 make {SHORTER}."),
        (
            [(1.1, 2.0), (0.5, 0.9), (0.9, 1.1)],
            f"Of 3 trainings over several parts, 1 makes {SHORTER}, 1 makes it longer and 1 is undecided.",
        ),
        (
            [(0.5, 0.9), (0.4, 0.99), (1.0, 1.2), (0.0, math.inf)],
            f"Of 4 trainings over several parts, none makes {SHORTER}, 2 make it longer and 2 are undecided.",
        ),
        ([(1.1, 2.0)], ""),
    ],
)
def test_strategies_are_counted_by_their_intervals(row, intervals, sentence):
    rows = [row(speed_up=Ratio(1.0, low, high, 3)) for low, high in intervals]
    assert scaling_lines.in_short(rows) == [sentence] * bool(sentence)


@pytest.mark.parametrize(
    ("others", "said"), [(0, ""), (1, " (1 computes another algorithm)"), (2, " (2 compute another algorithm)")]
)
def test_trainings_that_compute_another_algorithm_are_counted_and_said(row, others, said):
    faster = Ratio(1.8, 1.7, 1.9, 3)
    rows = [
        replace(row(speed_up=faster), computes=scaling.OTHER if place < others else scaling.SAME) for place in range(3)
    ]
    assert scaling_lines.in_short(rows) == [f"Of 3 trainings over several parts{said}, 3 make {SHORTER}."]


@pytest.mark.parametrize("kind", ["alone", "local", "asynchronous"])
def test_ranks_that_do_not_wait_are_not_counted(row, kind):
    faster = Ratio(2.0, 1.9, 2.1, 3)
    assert scaling_lines.in_short([row(speed_up=faster), row(speed_up=faster, kind=kind)]) == []


def test_what_the_exchange_takes_is_on_the_page_and_in_the_terminal(view, printed):
    for text in (Page(page.render(view)).text(), " ".join(printed(view, 200).split())):
        assert "Of a step, the exposed exchange takes 10.0 % [10.0 %, 10.0 %] (copies:2) in Fake." in text


@pytest.mark.parametrize(
    ("kind", "divides"), [("sharded", True), ("model", True), ("pipeline", True), ("processes", False)]
)
def test_the_memory_of_a_rank_is_said_where_ranks_divide_what_one_process_holds(view, kind, divides):
    """Each of two ranks has 310 MiB, the single process 300."""
    comparison = as_kind(view, "copies:2", kind, "network" if strategy_kinds.of(kind).cuts else "batch")
    rows = scaling.scaled(comparison)
    (row,) = [each for each in rows if each.contender.case.strategy == "copies:2"]
    sentences = [each for each in scaling_lines.in_short(rows) if "memory" in each]
    (figures,) = [
        each
        for each in strategies.as_dict(strategies.strategies(comparison), lambda one: one.variant)["strategies"]
        if each["strategy"] == "copies:2"
    ]
    if divides:
        assert row.memory.value == pytest.approx(310 / 300)
        (sentence,) = sentences
        assert sentence == (
            "Where ranks divide weights or the network, the largest has 103.3 % [103.3 %, 103.3 %] (copies:2) in Fake of the peak "
            "memory of one process."
        )
        assert (
            "peak memory of its largest rank 103.3 % [103.3 %, 103.3 %] of that of one process"
            in scaling_lines.line(row)
        )
        assert figures["memory"]["value"] == pytest.approx(310 / 300)
    else:
        assert (row.memory, sentences, figures["memory"]) == (None, [], None)


def test_the_memory_of_a_rank_is_that_of_the_one_that_needs_most(view):
    comparison = as_kind(view, "copies:2", "model", "network")

    def larger(trial):
        (other,) = trial.others
        return replace(trial, others=(replace(other, peak_resident_bytes=450 * 2**20),))

    contenders = [
        replace(each, trials=tuple(map(larger, each.trials))) if each.case.strategy == "copies:2" else each
        for each in comparison.contenders
    ]
    rows = scaling.scaled(replace(comparison, contenders=tuple(contenders)))
    assert [row.memory.value for row in rows if row.memory] == pytest.approx([1.5])


def test_one_process_that_drives_all_devices_has_no_rank_whose_memory_is_a_part(view):
    comparison = as_kind(view, "copies:2", "model", "network")

    def one_process(trial):
        return replace(trial, job=replace(trial.job, spread=replace(trial.job.spread, launcher="")))

    contenders = [
        replace(each, trials=tuple(map(one_process, each.trials))) if each.case.strategy == "copies:2" else each
        for each in comparison.contenders
    ]
    rows = scaling.scaled(replace(comparison, contenders=tuple(contenders)))
    assert [row.memory for row in rows if row.contender.case.strategy == "copies:2"] == [None]
