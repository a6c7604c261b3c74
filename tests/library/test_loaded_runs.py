"""A recorded run as Python objects: tables, ratios, verdicts, processes; and what is asked for and does not exist."""

from __future__ import annotations

import json
import math

import pytest

import steelyard
from steelyard.cli.main import main
from steelyard.errors import UserError


@pytest.fixture
def run(recorded):
    recorded("training")
    return steelyard.load("latest")


def test_a_run_is_found_by_name_and_by_folder(recorded):
    folder = recorded("training")
    named = [steelyard.load(each).name for each in ("latest", "training", "train", folder / "training")]
    assert named == ["training"] * 4
    assert steelyard.load("training", runs=folder).folder == folder / "training"
    with pytest.raises(UserError, match="There is no run 'trainings'"):
        steelyard.load("trainings")


def test_the_table_has_the_numbers_of_the_json(run, capsys):
    assert main(["report", "training", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["comparisons"][0]["contenders"]
    rows = [row for row in run.table("time per step") if row["input"] == "pipeline"]
    assert [row["contender"] for row in rows] == ["fake/scripted", "dummy/scripted"]
    for row, contender in zip(rows, shown, strict=True):
        location = contender["speeds"]["pipeline"]["location"]
        assert (row["value"], row["low"], row["high"]) == (
            location["value_ns"],
            location["low_ns"],
            location["high_ns"],
        )
        assert (row["unit"], row["certificate"], row["processes"]) == ("ns", "certified", 5)
    first, second = rows
    assert (first["is_best"], first["ratio"]) == (True, None)
    assert second["ratio"] == pytest.approx(1.21, abs=0.01)
    assert second["ratio_low"] < second["ratio"] < second["ratio_high"]


def test_another_quantity_has_its_own_ranking_and_unit(run):
    table = run.table("peak memory")
    assert [(row["unit"], row["input"], round(row["value"] / 2**20, 6)) for row in table] == [
        ("bytes", "process", 300),
        ("bytes", "process", 310),
    ]
    assert table.sentences == ("Fake uses the least memory.",)
    with pytest.raises(UserError, match="There is no quantity 'peak memories'"):
        run.table("peak memories")


def test_a_price_is_that_of_the_call_and_not_of_the_run(run):
    times, costs = run.table("step time"), run.table("cost", price="3.6 EUR/h")
    assert [row["value"] for row in costs] == pytest.approx([row["value"] / 1e9 * 0.001 for row in times])
    assert [row["ratio"] for row in costs] == pytest.approx([row["ratio"] for row in times])
    assert {row["unit"] for row in costs} == {"EUR per step"}
    assert [row["value"] for row in run.table("cost", price="7.2/h")] == pytest.approx(
        [2 * row["value"] for row in costs]
    )
    assert run.as_dict(price="1/h")["price"]["amount"] == 1
    assert "price" not in run.as_dict()
    with pytest.raises(UserError, match="A cost needs a price"):
        run.table("cost")
    with pytest.raises(UserError, match="A price must be an amount above 0"):
        run.table(price="cheap")


def test_a_ratio_is_a_over_b_and_its_verdict_is_that_of_the_page(run):
    comparison = run["line:small"]
    ahead, behind = comparison.ratio("fake", "dummy"), comparison.ratio("dummy", "fake")
    assert (ahead.verdict, behind.verdict) == ("better", "worse")
    assert ahead.value == pytest.approx(1 / behind.value)
    assert (ahead.low, ahead.high) == (pytest.approx(1 / behind.high), pytest.approx(1 / behind.low))
    assert str(ahead) == ahead.sentence == behind.sentence
    assert ahead.sentence.startswith("Fake is 1.21x")
    assert ahead.rounds == 5
    assert comparison.ratio("fake", "dummy", "cached").value != ahead.value


def test_a_ratio_of_more_is_better_points_the_same_way(run):
    pair = run.comparison("line", "throughput").ratio("fake", "dummy")
    assert pair.value == pytest.approx(1 / run["line"].ratio("fake", "dummy").value)
    assert pair.verdict == "better"


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda run: run["lime:small"], "has no comparison 'lime:small'. Did you mean 'line:small'"),
        (lambda run: run["line"].contender("fakes"), "has no contender 'fakes'"),
        (lambda run: run["line"].ratio("fake", "fake"), "are not compared"),
        (lambda run: run["line"].table("placed"), "has no input 'placed'; it has pipeline, cached."),
    ],
)
def test_what_does_not_exist_is_named(run, ask, message):
    with pytest.raises(UserError) as raised:
        ask(run)
    assert message in str(raised.value)


def test_a_contender_has_its_processes_and_their_steps(run):
    contender = run["line"].contender("dummy")
    assert (contender.framework, contender.version, contender.certified, contender.failure) == (
        "dummy",
        "1.2.3",
        True,
        "",
    )
    assert [process.round for process in contender.trials] == [1, 2, 3, 4, 5]
    process = contender.trials[0]
    steps = process.steps("cached")
    assert steps.shape == (4,)
    assert process.value("step time", "cached") == pytest.approx(steps.mean())
    assert process.value("peak memory") == 325058560


def test_uncertified_contenders_have_no_ratio(recorded):
    recorded("uncertified")
    comparison = steelyard.load().comparisons[0]
    contender, other, *_ = comparison.contenders
    with pytest.raises(UserError, match="both need a valid, certified result"):
        comparison.ratio(contender.name, other.name)


def test_notebooks_show_verdicts_and_escaped_names(run):
    html = run._repr_html_()
    assert html.count("<strong>Fake is the fastest.</strong>") == 2
    assert "<td>9.99 ms [9.97, 10.00]</td>" in html
    hostile = steelyard.Table([{"contender": "<script>"}], ("<b>",))
    assert hostile._repr_html_().count("&lt;") == 2
    assert "<script>" not in hostile._repr_html_()


def test_two_runs_are_compared(recorded):
    recorded("before-and-after")
    changes = steelyard.compare("before", "after")
    change = next(each for each in changes if (each.title, each.input) == ("Fake", "pipeline"))
    assert change.ratio == pytest.approx(1.2, abs=0.01)
    assert change.low < change.ratio < change.high
    assert "20 % slower" in change.sentence
    with pytest.raises(UserError, match="did not measure the same thing"):
        steelyard.compare("before", "elsewhere")
    assert steelyard.compare("before", "elsewhere", anyway=True)[0].ratio is None


def test_the_tidy_table_has_a_row_for_each_process_input_and_quantity(run):
    table = run.tidy()
    keys = [(row["case.id"], row["process"], row["input"], row["quantity"]) for row in table]
    assert len(keys) == len(set(keys))
    times = [
        row["value"]
        for row in table
        if (row["contender"], row["input"], row["quantity"]) == ("fake/scripted", "pipeline", "step time")
    ]
    assert len(times) == 5
    mean = math.exp(sum(map(math.log, times)) / 5)
    (standing,) = [row for row in run.table() if (row["contender"], row["input"]) == ("fake/scripted", "pipeline")]
    assert mean == pytest.approx(standing["value"])
    assert {row["counts"] for row in table} == {True}
    assert all(row.keys() == table[0].keys() for row in table)
    assert all(value is None or isinstance(value, str | int | float) for row in table for value in row.values())


def test_processes_that_are_in_no_verdict_do_not_count(recorded):
    recorded("uncertified")
    counts = {(row["certificate"], row["counts"]) for row in steelyard.load().tidy()}
    assert ("none", False) in counts or ("rejected", False) in counts
    assert not any(counted for state, counted in counts if state != "certified")
