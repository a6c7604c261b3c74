"""What workers reported, with its cause and remedy, and peak memory that is that of the libraries."""

from __future__ import annotations

from dataclasses import replace

import pytest
from recorded import Script, view_of, write_run

from steelyard.analysis import reported

COMPILED = {"name": "compiled-while-counted", "count": 3, "input": "pipeline"}


def contender_of(view, sizes, epochs=False):
    """Return a contender whose first process compiled in counted blocks, with further sizes of its case."""
    (comparison, *_) = view.comparisons
    first = comparison.contenders[0]
    trial = replace(first.trials[0], warnings=(COMPILED,))
    if epochs:
        length = replace(trial.job.schedule.counted, unit="epochs", count=2)
        trial = replace(trial, job=replace(trial.job, schedule=replace(trial.job.schedule, counted=length)))
    case = replace(first.case, sizes=first.case.sizes | sizes)
    return replace(first, case=case, trials=(trial, *first.trials[1:]))


@pytest.mark.parametrize(
    ("sizes", "advice"),
    [
        (
            {"lengths": "own", "multiple": 1, "buckets": 1},
            "To have fewer lengths, round lengths up (--set multiple=32) or draw batches of like length (--set buckets=4).",
        ),
        ({"lengths": "own", "multiple": 64}, "To have fewer lengths, round lengths up (--set multiple=128)."),
        ({"lengths": "own"}, ""),
    ],
)
def test_compilations_because_of_lengths_name_the_cause_and_the_remedy(recorded_view, sizes, advice):
    (found,) = reported.warnings(contender_of(recorded_view, sizes))
    assert found.sentence == (
        "The framework compiled or traced something in counted blocks. Every batch is as long as its longest sample, and the "
        "framework compiles for each length that it has not seen."
    )
    assert found.advice == advice


@pytest.mark.parametrize(("sizes", "epochs"), [({"lengths": "padded"}, False), ({}, False), ({"lengths": "own"}, True)])
def test_other_compilations_are_not_explained_by_lengths(recorded_view, sizes, epochs):
    (found,) = reported.warnings(contender_of(recorded_view, sizes, epochs))
    assert found.sentence == "The framework compiled or traced something in counted blocks."
    assert found.advice == ""


@pytest.mark.parametrize(("network", "noted"), [(10, True), (200, False)])
def test_the_peak_memory_of_a_tiny_network_is_that_of_the_libraries(tmp_path, network, noted):
    peak = 300 * 2**20
    scripts = {
        "fake": Script(memory={"import": peak - network * 2**20, "counted": peak}),
        "dummy": Script(12.0, memory={"counted": peak}),
    }
    view = view_of(write_run(tmp_path, scripts))
    found = [each for each in view.warnings if each.name == "MemoryOfLibraries"]
    assert [(each.severity, each.sentence) for each in found] == [
        (
            "note",
            "Importing the libraries takes 97 % or more of the peak memory of Fake: that figure says little about this network.",
        )
    ][: int(noted)]
