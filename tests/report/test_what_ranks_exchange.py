"""What ranks exchange: the table of the page, the lines of the terminal and the JSON, from scripted runs."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from reading import Page
from recorded import view_of
from test_scaling import SCRIPTS, run

from steelyard.analysis import rank_exchange
from steelyard.profiles.classes import EXCHANGE
from steelyard.report import as_json, page
from steelyard.report.sections import rank_exchange as section
from steelyard.report.sections import rank_exchange_columns
from steelyard.results import communication as exchanged
from steelyard.results import record
from steelyard_worker import protocol

PARAMETERS = 27  # of the smallest workload
SENT = {"copies": 216, "alone": 0}  # bytes of a step and rank


def event(**values):
    """Return a line of an events file."""
    return json.dumps({"v": protocol.VERSION, "t_ns": 0, **values}) + "\n"


def all_reduce(milliseconds, phase="counted"):
    """Return the event of a block of ten all-reduces of the gradients."""
    return event(
        event="all-reduce",
        collective="scripted mean",
        phase=phase,
        bytes=4 * PARAMETERS,
        processes=2,
        calls=10,
        elapsed_ns=round(1e7 * milliseconds),
        sent_bytes=240,
    )


DONE = event(event="done")


def write(root, *lines, kind="processes", sent=True):
    """Write a run with counted bytes, whose copies measured this exchange on both ranks; returns its folder."""
    folder = run(root, SCRIPTS)
    for path in folder.glob("trials/*/**/events.jsonl") if sent else ():
        strategy = next((name for name in SENT if name in str(path)), None)
        lines_of_rank = [json.loads(line) for line in path.read_text().splitlines()]
        for each in lines_of_rank:
            if strategy and each["event"] == "samples":
                each |= {"sent_bytes": SENT[strategy] * each["steps"], "received_bytes": 108 * each["steps"]}
        path.write_text("".join(json.dumps(each) + "\n" for each in lines_of_rank))
    variant = next(each for each in record.read(folder).plan.variants if each.case.strategy == "copies:2")
    job = json.loads(next(folder.glob("trials/*copies*/job.json")).read_text())
    home = exchanged.folder_of(folder, variant.file_name)
    (home / "rank1").mkdir(parents=True)
    job["spread"]["kind"] = kind
    (home / "job.json").write_text(json.dumps(job))
    for rank in (home, home / "rank1") if lines else ():
        (rank / protocol.EVENTS).write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    blocks = (all_reduce(9, "warm-up"), all_reduce(1), all_reduce(2), all_reduce(4))
    return view_of(write(tmp_path_factory.mktemp("runs"), *blocks, DONE))


def cells(view, strategy):
    """Return the row of a strategy as {heading: text}."""
    (comparison,) = view.comparisons
    rows = rank_exchange.exchanges(comparison)
    contender = next(each.contender for each in rows if each.contender.case.strategy == strategy)
    columns = rank_exchange_columns.columns(rows)
    return {column.heading: str(column.format(comparison, contender, "")) for column in columns}


def test_a_row_has_bytes_of_steps_and_the_exchange_by_itself(view):
    found = cells(view, "copies:2")
    assert found["sent per step and rank"] == "216 B 2.00x the gradients"
    assert found["received per step and rank"] == "108 B 1.00x the gradients"
    assert found["all-reduce alone"] == "2.00 ms 1.00 ms to 4.00 ms"
    assert found["bus bandwidth"] == "54.0 kB/s scripted mean"
    assert found["exposed per step"].startswith("600 µs [")
    assert "missed updates" not in found


def test_ranks_that_exchange_nothing_are_seen_to_send_nothing(view):
    found = cells(view, "alone:2")
    assert found["sent per step and rank"] == "0 B 0x the gradients"
    assert found["all-reduce alone"] == "-"
    assert found["exposed per step"] == "none"


def test_page_terminal_and_json_say_the_same(view, printed):
    found = Page(page.render(view))
    assert section.HEADING in [each.words for each in found.all("h3")]
    words = " ".join(printed(view, 200).split())
    assert (
        "216 B sent per step and rank (2.00x the gradients); an all-reduce of 108 B takes 2.00 ms alone (1.00 ms to 4.00 ms over blocks; bus bandwidth "
        in words
    )
    assert "2.00 ms" in found.text()
    rows = {each["case"]: each for each in as_json.as_dict(view)["comparisons"][0]["communication"]}
    (row,) = (each for name, each in rows.items() if "copies:2" in name)
    assert row["sent_bytes_per_step"] == [216, 216]
    assert row["all_reduce"]["ns"] == 2e6
    assert row["all_reduce"]["bus_gbps"] == pytest.approx(108 / 2e6)
    assert row["missed_updates"] is None
    json.dumps(rows, allow_nan=False)


def test_every_column_is_explained(view):
    terms = {each.words for each in Page(page.render(view)).all("dt")}
    assert cells(view, "copies:2").keys() <= terms


def test_stale_gradients_have_a_column_and_a_plot(tmp_path):
    counted = event(event="staleness", steps=100, missed=[25, 50, 25])
    view = view_of(write(tmp_path, counted, DONE, kind="asynchronous"))
    found = cells(view, "copies:2")
    assert found["missed updates"] == "1.00 25 % none"
    assert found["all-reduce alone"] == "-"
    html = page.render(view)
    assert "Updates that gradients have missed" in html
    assert '"y":[25.0,50.0,25.0]' in html
    row = next(each for each in as_json.as_dict(view)["comparisons"][0]["communication"] if each["missed_updates"])
    assert row["missed_updates"] == {"missed": [50, 100, 50], "mean": 1.0}


def test_time_in_collectives_is_that_of_the_profile(view):
    (comparison,) = view.comparisons

    def profiled(contender):
        parts = SimpleNamespace(classes={EXCHANGE: 2e6} if contender.case.strategy == "copies:2" else {}, step_ns=8e6)
        return replace(contender, profile=SimpleNamespace(breakdown=parts))

    known = replace(view, comparisons=(replace(comparison, contenders=tuple(map(profiled, comparison.contenders))),))
    assert cells(known, "copies:2")["time in collectives"] == "2.00 ms 25 % of the step"
    assert cells(known, "alone:2")["time in collectives"] == "none by the profiler"
    assert "time in collectives" not in cells(view, "copies:2")


def test_a_reason_is_shown_in_place_of_figures(tmp_path):
    error = event(event="error", kind="unsupported", message="It has no such exchange.")
    view = view_of(write(tmp_path, error))
    assert cells(view, "copies:2")["all-reduce alone"] == "not measured"
    assert "It has no such exchange." in Page(page.render(view)).text()


@pytest.mark.parametrize(
    ("change", "cell", "reason"),
    [({"launcher": ""}, "- one process", "One process drives"), ({"shares": "network"}, "216 B 2.00x", "hold parts")],
)
def test_what_exchanges_no_gradients_between_processes_says_so(view, change, cell, reason):
    (comparison,) = view.comparisons

    def changed(contender):
        if contender.case.strategy != "copies:2":
            return contender
        trials = []
        for each in contender.trials:
            job = replace(each.job, spread=replace(each.job.spread, **change))
            others = () if "launcher" in change else each.others
            blocks = tuple(replace(block, sent_bytes=None) for block in each.blocks) if not others else each.blocks
            trials.append(replace(each, job=job, others=others, blocks=blocks))
        return replace(contender, trials=tuple(trials), communication=None)

    known = replace(view, comparisons=(replace(comparison, contenders=tuple(map(changed, comparison.contenders))),))
    assert cells(known, "copies:2")["sent per step and rank"].startswith(cell)
    (found,) = filter(None, map(rank_exchange.why_not, rank_exchange.exchanges(known.comparisons[0])))
    assert reason in found


def test_a_record_from_before_has_no_such_table(tmp_path):
    folder = run(tmp_path, SCRIPTS)
    (comparison,) = view_of(folder).comparisons
    assert rank_exchange.exchanges(comparison) == []
    assert section.HEADING not in page.render(view_of(folder))
    assert "communication" not in as_json.as_dict(view_of(folder))["comparisons"][0]


def test_what_was_not_seen_is_said(tmp_path):
    view = view_of(write(tmp_path, all_reduce(1), DONE, sent=False))
    assert cells(view, "copies:2")["sent per step and rank"] == "- not seen"


def test_an_exposed_exchange_without_an_interval_says_so(view):
    (comparison,) = view.comparisons
    row = next(each for each in rank_exchange.exchanges(comparison) if each.contender.case.strategy == "copies:2")
    few = replace(row, row=replace(row.row, exchange=replace(row.row.exchange, value=-0.1, enough=False)))
    assert str(rank_exchange_columns._exposed(few, comparison)) == "-600 µs not enough rounds"
