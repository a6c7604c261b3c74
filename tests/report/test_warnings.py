"""Warnings about a result: when they appear, and that their advice can be followed."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from recorded import Script, options, view_of, write_run

from steelyard.analysis import formatting, warnings
from steelyard.plan import spreading
from steelyard.report import details
from steelyard.results import record
from steelyard.statistics.sentences import percent
from steelyard.statistics.steadiness import SeriesLabel
from steelyard_worker.protocol import EVENTS, LOSSES, NOT_SCORED

SLOWER = SeriesLabel("slowdown", 40, 0.08)


def warnings_of(folder):
    return {warning.name: warning for warning in view_of(folder).warnings}


def two(**more):
    return {"fake": Script(**more), "dummy": Script(12.0)}


def test_a_noisy_machine_widens_practical_equality(tmp_path):
    noisy = view_of(write_run(tmp_path / "noisy", two(process_scatter=0.1)))
    ranking = noisy.comparisons[0].rankings[noisy.comparisons[0].primary]
    (warning,) = [warning for warning in noisy.warnings if warning.name == "NoisyMachine"]
    assert warning.sentence == (
        f"Ratios scatter by {percent(ranking.scatter)} from round to round, so contenders that differ by less than "
        f"{percent(ranking.delta_used)} are not told apart, and none are called the same."
    )
    assert ranking.delta_used == pytest.approx(1.4 * ranking.scatter)
    assert "NoisyMachine" not in warnings_of(write_run(tmp_path / "quiet", two()))


@pytest.mark.parametrize(
    ("label", "shift", "sentence"),
    [
        ("slowdown", -0.033, "Steps got slower during the measurement; this may bias the mean by about 3.3 %."),
        ("warm-up", 0.02, "Steps got faster during the measurement; this may bias the mean by about 2 %."),
        ("unstable", 0.1, "Step times changed late in the measurement; this may bias the mean by about 10 %."),
    ],
)
def test_unsteady_steps_are_described(recorded_view, label, shift, sentence):
    (warning,) = unsteady(recorded_view, SeriesLabel(label, 40, shift))
    assert (warning.subject, warning.sentence) == ("Fake on line:small, cached batch", sentence)


def test_a_change_that_hardly_moves_the_mean_is_not_mentioned(recorded_view):
    assert unsteady(recorded_view, SeriesLabel("warm-up", 3, 0.004)) == []


@pytest.mark.parametrize(
    ("spike", "share", "warned"),
    [(200.0, 0.0, True), (200.0, 1e-7, True), (200.0, 1e-5, False), (2.0, 0.0, False), (20.0, 0.0, False)],
)
def test_a_batch_that_was_memorised_is_named_where_its_blocks_are_slow(tmp_path, spike, share, warned):
    """The spike is one of the 25 steps of a block: a step that takes 200 times as long makes its block nine times as long."""
    folder = write_run(tmp_path, two(spike=spike))
    for home in folder.glob("trials/*fake*"):
        losses = np.fromfile(home / LOSSES, "<f4")
        losses[40:] = share * losses[0]
        losses.tofile(home / LOSSES)
    found = [each for each in view_of(folder).warnings if each.name == "MemorisedBatch"]
    assert bool(found) == warned
    for each in found:
        assert each.subject.startswith("Fake on line:small")
        assert each.severity == "warning"
        assert each.sentence.endswith("A block took up to 9 times as long as the median one.")


def test_an_evaluation_that_failed_is_a_warning_with_its_reason(tmp_path):
    run = write_run(tmp_path / "run", two())
    path = next(run.glob(f"trials/*fake*/{EVENTS}"))
    *lines, last = path.read_text().splitlines()
    event = {**json.loads(last), "event": "warning", "name": NOT_SCORED, "reason": "KeyError: 'scores'"}
    path.write_text("".join(f"{line}\n" for line in (*lines, json.dumps(event), last)))
    warning = warnings_of(run)["NotScored"]
    assert warning.sentence == "The test metric could not be computed: KeyError: 'scores'."
    assert (warning.severity, warning.advice[:15]) == ("warning", "The times count")


def test_contenders_whose_losses_part_are_named_together(tmp_path):
    folder = write_run(tmp_path, two())
    assert "LossesPart" not in warnings_of(folder)
    for home in folder.glob("trials/*fake*"):
        losses = np.fromfile(home / LOSSES, "<f4")
        losses[10:] = 40 * losses[10]
        losses.tofile(home / LOSSES)
    found = view_of(folder)
    (warning,) = [each for each in found.warnings if each.name == "LossesPart"]
    assert (warning.subject, warning.severity) == ("Fake and Dummy on line:small", "warning")
    assert "One of them may not go on as it was certified, and nothing here says which." in warning.sentence
    assert not any(each.failure for each in found.comparisons[0].contenders)


def unsteady(view, label):
    comparison = view.comparisons[0]
    contender = next(each for each in comparison.contenders if each.title == "Fake")
    speed = replace(contender.speeds["cached"], label=label)
    return [
        warning for warning in warnings._of_speed(comparison, contender, "cached", speed) if warning.name == "Unsteady"
    ]


def test_an_input_pipeline_that_limits_the_speed_is_noted(recorded_view):
    comparison = recorded_view.comparisons[0]
    contender = comparison.contenders[0]
    cached = contender.speeds["cached"]
    slow = replace(cached, location=replace(cached.location, value_ns=2 * cached.location.value_ns))
    (note,) = [w for w in warnings._of_speed(comparison, contender, "pipeline", slow) if w.name == "InputBound"]
    assert note.sentence == "The input pipeline limits the speed: a step takes 50 % less time with a cached batch."


def test_rounds_are_counted_in_words(recorded_view):
    sentences = {warning.name: warning.sentence for warning in recorded_view.warnings}
    assert sentences["RepeatedRounds"] == "1 round was repeated because the machine was disturbed."


@pytest.mark.parametrize(
    ("count", "text"), [(25_282_211_840, "23.5 GiB"), (33_554_432, "32.0 MiB"), (98_304, "96.0 KiB")]
)
def test_sizes_of_a_machine_have_a_readable_unit(count, text):
    assert details.host_facts({"memory_bytes": count}) == [("memory", text)]


def test_warnings_are_ordered_by_severity(tmp_path):
    above_peak = {"line:small/fake/scripted": "It would need 9 times the arithmetic peak."}
    view = view_of(write_run(tmp_path, two(warnings=("no-steady-state",)), above_peak=above_peak))
    severities = [warning.severity for warning in view.warnings]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    assert severities[0] == "error"


def test_a_speed_that_fewer_multiplications_explain_is_used_with_a_warning(tmp_path):
    notes = {"line:small/fake/scripted": "That is possible only with convolutions that multiply less often."}
    view = view_of(write_run(tmp_path, two(), fewer_multiplications=notes))
    (warning,) = [warning for warning in view.warnings if warning.name == "FewerMultiplications"]
    assert (warning.severity, warning.subject) == ("warning", "Fake on line:small")
    assert warning.sentence == notes["line:small/fake/scripted"]
    assert view.comparisons[0].rankings["cached"].leader


def test_what_may_bias_a_mean_stands_at_the_number_and_is_a_note(recorded_view):
    comparison = recorded_view.comparisons[0]
    contender = comparison.contenders[0]
    speed = contender.speeds["cached"]
    before = formatting.mean_step(contender, "cached")
    unsteady_one = replace(contender, speeds={**contender.speeds, "cached": replace(speed, label=SLOWER)})
    shown = formatting.mean_step(unsteady_one, "cached")
    assert shown.value == before.value
    assert shown.interval == f"{before.interval}, unsteady, may be off by 8 %"
    (found,) = [
        each
        for each in warnings._of_speed(comparison, contender, "cached", replace(speed, label=SLOWER))
        if each.name == "Unsteady"
    ]
    assert found.severity == "note"


def disturbed(root, wanted, scripts):
    """Return the warnings of a run of which a disturbed round counts."""
    run = write_run(root, scripts, wanted)
    lines = [json.loads(line) for line in (run / record.ROUNDS).read_text().splitlines()]
    lines[-1] |= {"reasons": ["other processes used 1.00 cores"]}
    (run / record.ROUNDS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return warnings_of(run)


def test_load_shifts_ratios_between_unlike_numbers_of_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(spreading, "usable_cores", lambda: 8)
    scripts = {"single": Script(15.0), "copies:2": Script(9.0)}
    wanted = options(frameworks=("fake",), strategies=("single:1", "copies:2"), threads=(1,))
    found = disturbed(tmp_path / "ranks", wanted, scripts)
    assert found["ShiftedRatios"].subject == "line:small"
    assert "shifts ratios between 1 and 2 processes" in found["ShiftedRatios"].sentence
    alike = disturbed(tmp_path / "alike", options(), two())
    assert "DisturbedRounds" in alike
    assert "ShiftedRatios" not in alike
    assert "ShiftedRatios" not in warnings_of(write_run(tmp_path / "calm", scripts, wanted))
