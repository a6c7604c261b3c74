"""What several ranks bring: figures, page, terminal and JSON, from scripted runs."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest
from reading import Page
from recorded import Script, options, view_of, write_run

from steelyard.analysis import scaling
from steelyard.analysis.strategies import strategies
from steelyard.plan import spreading
from steelyard.report import as_json, page
from steelyard.report.sections import strategies as section
from steelyard.report.sections import strategy_columns
from steelyard.results.quantities import PEAK_MEMORY, THROUGHPUT
from steelyard.wording.notation import quantity_text
from steelyard_worker import protocol

EXACT = {"scatter": 0.0, "process_scatter": 0.0}
STEADY = Script(10.0, **EXACT)
SCRIPTS = {"single": STEADY, "copies": Script(6.0, **EXACT), "alone": Script(5.4, passed=None, **EXACT)}
STRATEGIES = ("single:1", "copies:2", "alone:2")
HEADING = section.HEADING


def run(root, scripts, strategies=STRATEGIES, **more):
    """Write a run with these strategies, in which every other rank recorded what the first one did; returns its folder."""
    wanted = options(**{"frameworks": ("fake",), "strategies": strategies, "threads": (1,)} | more)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spreading, "usable_cores", lambda: 8)
        folder = write_run(root, scripts, wanted)
    for home in (folder / "trials").iterdir():
        parts = json.loads((home / "job.json").read_text())["case"]["strategy"].partition(":")[2]
        for rank in range(1, int(parts or 1)) if (home / protocol.SAMPLES).exists() else ():
            (home / f"rank{rank}").mkdir()
            shutil.copy(home / protocol.SAMPLES, home / f"rank{rank}" / protocol.SAMPLES)
            lines = (home / protocol.EVENTS).read_text().splitlines(keepends=True)
            kept = [line for line in lines if '"evaluated"' not in line]  # the first rank alone scores predictions
            (home / f"rank{rank}" / protocol.EVENTS).write_text("".join(kept))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return run(tmp_path_factory.mktemp("runs"), SCRIPTS)


@pytest.fixture(scope="module")
def view(folder):
    return view_of(folder)


def rows_of(view):
    (comparison,) = view.comparisons
    return {row.contender.case.strategy: row for row in scaling.scaled(comparison)}


def as_kind(view, strategy, kind, shares, **knobs):
    """Return the comparison of a view in which a strategy is of another kind, and has these knobs."""

    def changed(contender):
        if contender.case.strategy != strategy:
            return contender
        spread = replace(scaling.spread_of(contender), kind=kind, shares=shares)
        trials = tuple(replace(each, job=replace(each.job, spread=spread)) for each in contender.trials)
        settings = replace(contender.case.settings, knobs=contender.case.settings.knobs | knobs)
        return replace(contender, trials=trials, case=replace(contender.case, settings=settings))

    (comparison,) = view.comparisons
    return replace(comparison, contenders=tuple(map(changed, comparison.contenders)))


def cell(comparison, strategy, heading):
    """Return the text of a strategy's cell in a column."""
    rows = scaling.scaled(comparison)
    (column,) = [each for each in strategy_columns.columns(rows) if each.heading == heading]
    (contender,) = [each.contender for each in rows if each.contender.case.strategy == strategy]
    return str(column.format(comparison, contender, comparison.primary))


def test_speed_up_efficiency_and_exchange_are_those_of_the_documents(view):
    row = rows_of(view)["copies:2"]
    assert row.parts == row.processes == 2
    assert row.speed_up.value == pytest.approx(10 / 6, rel=1e-5)
    assert row.efficiency.value == pytest.approx(10 / 6 / 2, rel=1e-5)
    assert row.exchange.value == pytest.approx(1 - 5.4 / 6, rel=1e-4)
    assert row.computes == "the same"
    assert row.idle is row.ideal_idle is None


def test_the_interval_of_a_speed_up_is_that_of_the_verdict(tmp_path):
    scripts = {name: replace(each, process_scatter=0.01) for name, each in SCRIPTS.items()}
    found = view_of(run(tmp_path, scripts))
    (comparison,) = found.comparisons
    row = rows_of(found)["copies:2"]
    verdict = comparison.rankings[comparison.primary].between(row.single.case.id, row.contender.case.id)
    assert (row.speed_up.low, row.speed_up.high) == (verdict.low, verdict.high)
    assert row.efficiency.low == pytest.approx(verdict.low / 2)
    assert row.efficiency.high == pytest.approx(verdict.high / 2)
    assert row.exchange.low < row.exchange.value < row.exchange.high


def two_frameworks(root, **script):
    """Return the comparison of two frameworks, of which MXNet is the faster one with a single process."""
    times = {"pytorch/eager,strategy=single": 10.0, "pytorch/eager,strategy=ddp": 5.0, "alone": 4.0, "mxnet": 8.0}
    scripts = {key: Script(time, passed=None if key == "alone" else True, **script) for key, time in times.items()}
    wanted = {"workloads": ("vgg16:tiny",), "frameworks": ("mxnet", "pytorch")}
    (comparison,) = view_of(
        run(root, scripts, ("alone:2", "processes:2", "server:2", "single:1"), **wanted)
    ).comparisons
    return comparison


def test_the_rows_of_a_framework_follow_its_single_process(tmp_path):
    assert [row.contender.variant for row in scaling.scaled(two_frameworks(tmp_path))] == [
        "pytorch/eager,strategy=single:1",
        "pytorch/eager,strategy=ddp:2",
        "pytorch/eager,strategy=alone:2",
        "mxnet/hybridized,strategy=single:1",
        "mxnet/hybridized,strategy=dist-sync:2",
        "mxnet/hybridized,strategy=alone:2",
    ]


def test_a_speed_up_has_more_of_the_error_than_a_comparison_of_frameworks(tmp_path):
    comparison = two_frameworks(tmp_path, process_scatter=0.2, rounds=3)
    ranking = comparison.rankings[comparison.primary]
    rows = [row for row in scaling.scaled(comparison) if row.parts > 1 and row.single]
    certified = {frozenset((row.single.case.id, row.contender.case.id)) for row in rows if row.computes == "the same"}
    assert len(certified) == 2
    assert certified < ranking.plan.planned
    assert all(each.kind == "undecided" for each in ranking.verdicts)
    errors = {frozenset((each.a, each.b)): each.error for each in ranking.verdicts}
    assert len(errors) == 6
    planned = [errors.pop(pair) for pair in certified]
    assert planned == pytest.approx([2 * next(iter(errors.values()))] * 2)


def test_a_ranking_by_throughput_has_the_same_speed_up(folder):
    row = rows_of(view_of(folder, THROUGHPUT))["copies:2"]
    assert row.speed_up.value == pytest.approx(10 / 6, rel=1e-5)


def test_ranks_without_exchange_are_marked_as_another_algorithm(view):
    row = rows_of(view)["alone:2"]
    assert row.computes == "another algorithm"
    assert row.exchange is row.without is None
    assert row.speed_up.value == pytest.approx(10 / 5.4, rel=1e-5)


def test_memory_and_cores_are_of_each_rank(view):
    row = rows_of(view)["copies:2"]
    one = row.contender.trials[0].peak_resident_bytes
    assert row.memory_bytes == (one, one)
    assert row.busy_cores == pytest.approx((2.0, 2.0))
    assert row.contender.peak_resident_bytes == 2 * one
    assert row.contender.speeds["cached"].busy_cores == pytest.approx(4.0)
    assert row.contender.speeds["cached"].share_of_cores == pytest.approx(2.0)


def test_the_pinned_single_process_is_preferred_and_named(tmp_path):
    scripts = {"single:1": Script(10.0, **EXACT), "single": Script(8.0, **EXACT), "copies": SCRIPTS["copies"]}
    found = view_of(run(tmp_path / "a", scripts, ("single", "single:1", "copies:2")))
    assert rows_of(found)["copies:2"].single.case.strategy == "single:1"
    found = view_of(run(tmp_path / "b", SCRIPTS, ("single", "copies:2")))
    row = rows_of(found)["copies:2"]
    assert row.single.case.strategy == "single"
    assert row.exchange is None
    lines = strategies(found.comparisons[0]).lines
    assert "exposed exchange not measured, as the row alone:2 is missing (--strategy alone:2)" in lines[0]


@pytest.mark.parametrize("fault", [{"passed": False}, {"passed": None}, {"failure": ("crash", "It ended.")}])
def test_what_is_not_certified_has_no_speed_up(tmp_path, fault):
    row = rows_of(view_of(run(tmp_path, SCRIPTS | {"copies": replace(SCRIPTS["copies"], **fault)})))["copies:2"]
    assert row.speed_up is row.exchange is row.single is None
    assert row.computes == ("failed" if "failure" in fault else "not certified")


def test_a_single_process_that_is_not_certified_is_compared_with_nothing(tmp_path):
    found = view_of(run(tmp_path, SCRIPTS | {"single": replace(STEADY, passed=False)}))
    row = rows_of(found)["copies:2"]
    assert row.single is row.speed_up is None
    assert row.exchange.value == pytest.approx(1 - 5.4 / 6, rel=1e-4)
    assert "no single process to compare with" in " ".join(strategies(found.comparisons[0]).lines)


def test_a_pipeline_has_its_idle_share_beside_the_ideal_one(view):
    comparison = as_kind(view, "copies:2", "pipeline", "network", micro_batches=4)
    row = next(each for each in scaling.scaled(comparison) if each.kind == "pipeline")
    assert row.idle.value == pytest.approx(1 - 10 / 2 / 6, rel=1e-5)
    assert row.ideal_idle == pytest.approx(1 / 5)
    assert row.exchange is None
    found = strategies(comparison)
    columns = strategy_columns.columns(found.rows)
    assert [each.heading for each in columns if "idle" in each.heading] == ["idle share", "ideal idle share"]
    assert "(at best 20 %)" in " ".join(found.lines)


@pytest.mark.parametrize(
    ("kind", "shares", "reason"),
    [
        ("model", "network", "parts of a network"),
        ("pipeline", "batch", "parts of a network"),
        ("asynchronous", "network", "one rank sends batches"),
        ("processes", "batch", ""),
    ],
)
def test_why_there_is_no_exposed_exchange_is_said(view, kind, shares, reason):
    comparison = as_kind(view, "copies:2", kind, shares)
    assert cell(comparison, "copies:2", "exposed exchange") == (f"- {reason}" if reason else "10.0 % [10.0 %, 10.0 %]")


def test_the_memory_of_a_rank_stands_above_that_of_all(view):
    (comparison,) = view.comparisons
    of_single, (of_rank, _) = (rows_of(view)[each].memory_bytes for each in ("single:1", "copies:2"))
    assert cell(comparison, "single:1", "memory per rank") == quantity_text("bytes", *of_single)
    expected = f"{quantity_text('bytes', of_rank)} {quantity_text('bytes', 2 * of_rank)} in all"
    assert cell(comparison, "copies:2", "memory per rank") == expected
    assert cell(comparison, "copies:2", "busy cores per rank") == "2.00"


def test_one_process_that_drives_all_devices_has_no_ranks(view):
    row = replace(rows_of(view)["copies:2"], processes=1)
    in_all = quantity_text("bytes", sum(row.memory_bytes))
    assert str(strategy_columns._memory(row)) == f"{in_all} one process"
    assert str(strategy_columns._busy_cores(row)) == "- one process"


@pytest.mark.parametrize("shares", ["network", "batch"])
def test_parts_of_a_network_are_not_compared_with_ranks_that_share_the_batch(view, shares):
    """One process that drives all devices gets whole batches, so its strategy does not say that it shares anything else."""
    comparison = as_kind(view, "copies:2", "model", shares)
    row = next(each for each in scaling.scaled(comparison) if each.kind == "model")
    assert row.speed_up
    assert row.without is row.exchange is None
    assert "exposed exchange" not in strategies(comparison).lines[0]


@pytest.mark.parametrize("knobs", [{}, {"micro_batches": "4"}, {"micro_batches": 0}, {"micro_batches": -1}])
def test_a_pipeline_without_a_number_of_micro_batches_has_no_ideal(view, knobs):
    comparison = as_kind(view, "copies:2", "pipeline", "network", **knobs)
    assert {each.ideal_idle for each in scaling.scaled(comparison)} == {None}


def test_the_kind_of_a_strategy_marks_another_algorithm_without_a_certificate(view):
    comparison = as_kind(view, "copies:2", "local", "batch")
    row = next(each for each in scaling.scaled(comparison) if each.kind == "local")
    assert row.computes == "another algorithm"
    assert "(another algorithm)" in strategies(comparison).lines[0]


def test_another_batch_for_more_parts_shows_the_overhead_of_the_documents(tmp_path):
    scripts = {
        "batch=16/fake/scripted,strategy=single": STEADY,
        "batch=32/fake/scripted,strategy=copies": Script(12.5, **EXACT),
        "fake": Script(20.0, passed=None, **EXACT),
    }
    found = view_of(run(tmp_path, scripts, batches=(16, 32)))
    weak = [each for comparison in found.comparisons for each in scaling.weak(comparison, found.comparisons)]
    assert [(each.contender.case.strategy, each.batch, each.single.case.strategy) for each in weak] == [
        ("copies:2", 32, "single:1"),
        ("alone:2", 32, "single:1"),
    ]
    assert weak[0].overhead.value == pytest.approx(1 - (1 / 12.5) / (1 / 10), rel=1e-5)
    text = Page(page.render(found)).text()
    assert section.WEAK_HEADING in text
    (figures,) = [each["ranks"]["weak"] for each in as_json.as_dict(found)["comparisons"] if each["ranks"]["weak"]]
    assert figures[0]["overhead"]["value"] == pytest.approx(0.2, rel=1e-4)
    assert figures[0]["single_batch"] == 16


def test_page_terminal_and_json_say_the_same(view, printed):
    found = Page(page.render(view))
    assert HEADING in [each.words for each in found.all("h3")]
    assert {"speed-up", "exposed exchange"} <= {each.words for each in found.all("th", role="columnheader")}
    assert "Of several ranks, it is the sum over all of them." in found.html
    for text in (found.text(), " ".join(printed(view, 200).split())):
        assert "1.67x [1.67, 1.67]" in text
        assert "10.0 % [10.0 %, 10.0 %]" in text
        assert "another algorithm" in text
    rows = {each["strategy"]: each for each in as_json.as_dict(view)["comparisons"][0]["ranks"]["strategies"]}
    assert rows["copies:2"]["exchange"]["value"] == pytest.approx(0.1, rel=1e-4)
    assert rows["copies:2"]["single"].endswith("strategy=single:1")
    assert rows["single:1"]["speed_up"] is None


def test_every_column_is_explained(view):
    found = Page(page.render(view))
    terms = {each.words for each in found.all("dt")}
    (comparison,) = view.comparisons
    assert {each.heading for each in strategy_columns.columns(scaling.scaled(comparison))} <= terms


def test_a_damaged_record_of_a_rank_leaves_its_figures_out_and_is_a_warning(tmp_path):
    home = run(tmp_path, SCRIPTS)
    for each in home.glob("trials/*copies*/rank1/events.jsonl"):
        each.write_text("{")
    found = view_of(home)
    row = rows_of(found)["copies:2"]
    assert row.memory_bytes == row.busy_cores == ()
    assert row.speed_up.value == pytest.approx(10 / 6, rel=1e-5)
    assert row.contender.peak_resident_bytes is None
    assert cell(found.comparisons[0], "copies:2", "memory per rank") == "-"
    page.render(found)
    assert sum("another rank" in each.sentence for each in found.warnings) == SCRIPTS["copies"].rounds


def test_one_round_gives_no_interval(tmp_path):
    scripts = {name: replace(each, rounds=1) for name, each in SCRIPTS.items()}
    found = view_of(run(tmp_path, scripts))
    row = rows_of(found)["copies:2"]
    assert not row.efficiency.enough
    assert not row.exchange.enough
    assert "not enough rounds" in strategies(found.comparisons[0]).lines[0]
    json.dumps(as_json.as_dict(found), allow_nan=False)


def test_runs_without_ranks_and_other_rankings_have_no_such_section(recorded_view, folder, printed):
    for found in (recorded_view, view_of(folder, PEAK_MEMORY)):
        assert HEADING not in page.render(found)
    assert "Of several ranks" not in page.render(recorded_view)
    for found in (recorded_view, view_of(folder, PEAK_MEMORY)):
        assert HEADING not in printed(found, 120)
        assert "ranks" not in as_json.as_dict(found)["comparisons"][0]


def test_a_strategy_is_in_the_title_even_where_all_have_it(tmp_path):
    (comparison,) = view_of(run(tmp_path, SCRIPTS, ("copies:2",))).comparisons
    (contender,) = comparison.contenders
    assert contender.title == "Fake, copies:2"
    assert contender.variant == "fake/scripted,strategy=copies:2"
