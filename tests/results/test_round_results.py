"""The last attempt at a round counts, regardless of the order in which attempts are read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import recorded_trials
from hypothesis import given
from hypothesis import strategies as st

from steelyard.results import round_results, trials
from steelyard.results.first_losses import not_compared
from steelyard.results.quantities import FIRST_STEP, PEAK_MEMORY, QUANTITIES, STEP_TIME, THROUGHPUT

# (framework, round, attempt) -> how the process ended.
OUTCOMES = st.dictionaries(
    st.tuples(st.sampled_from(["fake", "dummy"]), st.integers(1, 4), st.integers(0, 11)),
    st.sampled_from(["done", "error", "nothing"]),
    max_size=14,
)
IDS = {name: recorded_trials.case(name).id for name in ("fake", "dummy")}


def _trial(framework: str, number: int, attempt: int, ending: str) -> trials.Trial:
    folder = Path(f"/run/trials/r{number:02d}.{attempt}-{framework}")
    job = recorded_trials.job(folder, number, attempt, framework)
    return trials.replay(folder, job, recorded_trials.events(ending=ending))


@given(outcomes=OUTCOMES, data=st.data())
def test_the_last_ended_attempt_at_a_round_counts_in_any_order(
    outcomes: dict[tuple[str, int, int], str], data: st.DataObject
) -> None:
    made = [_trial(*key, ending) for key, ending in outcomes.items()]
    results = round_results.collect(data.draw(st.permutations(made)), {})
    ended = {key: ending for key, ending in outcomes.items() if ending != "nothing"}
    last = {(name, number): attempt for name, number, attempt in sorted(ended)}
    for (name, number), attempt in last.items():
        done = ended[name, number, attempt] == "done"
        finished = results.finished.get(IDS[name], {}).get(number)
        assert results.has(IDS[name], number) == done
        assert (finished is not None) == done
        if finished:
            assert (finished.job.round, finished.job.attempt) == (number, attempt)
    assert sum(map(len, results.finished.values())) == sum(
        ended[name, number, attempt] == "done" for (name, number), attempt in last.items()
    )
    failing = {IDS[name] for (name, number), attempt in last.items() if ended[name, number, attempt] == "error"}
    assert results.failed.keys() == failing


def test_discarded_trials_are_neither_finished_nor_failed() -> None:
    results = round_results.collect([_trial("fake", 1, 0, "done"), _trial("fake", 2, 0, "error")], {})
    assert results.failed
    results.discard(lambda trial: not trial.done)
    assert not results.failed
    assert results.has(IDS["fake"], 1)
    assert not results.has(IDS["fake"], 2)


def test_certifying_trials_are_not_part_of_the_results() -> None:
    trial = _trial("fake", 0, 0, "done")
    results = round_results.collect([replace(trial, job=replace(trial.job, kind="certify"))], {})
    assert not results.finished.get(IDS["fake"])


CERTIFIED = {"losses": [1.0, 1 / 2, 1 / 3], "loss_limits": [1e-6, 1e-6, 1e-6]}  # those of `recorded_trials.write`


def _recorded(folder: Path) -> trials.Trial:
    recorded_trials.write(folder, recorded_trials.job(folder), recorded_trials.events())
    return trials.read(folder)


def test_a_trial_with_the_certified_losses_counts(tmp_path: Path) -> None:
    results = round_results.collect([_recorded(tmp_path / "r01.0-fake")], {IDS["fake"]: CERTIFIED})
    assert results.has(IDS["fake"], 1)
    assert not results.failed


@pytest.mark.parametrize("wrong", [1 / 3 + 1e-4, float("nan")])
def test_a_trial_with_another_loss_than_certified_counts_as_failed(tmp_path: Path, wrong: float) -> None:
    certificate = CERTIFIED | {"losses": [1.0, 1 / 2, wrong]}
    results = round_results.collect([_recorded(tmp_path / "r01.0-fake")], {IDS["fake"]: certificate})
    assert not results.finished[IDS["fake"]]
    error = results.failed[IDS["fake"]].error
    assert error
    assert error[0] == "deviation"
    assert "The loss of training step 3 is 0.3333333, but the certified computation has" in error[1]


def test_losses_on_other_batches_than_the_certificate_are_not_compared(tmp_path: Path) -> None:
    """With data, certificates use its batches; a protocol with a synthetic batch only has other losses."""
    trial = _recorded(tmp_path / "r01.0-fake")
    trial = replace(trial, job=replace(trial.job, data=replace(trial.job.data, prepared="/prepared")))
    results = round_results.collect([trial], {IDS["fake"]: CERTIFIED | {"losses": [9.0, 9.0, 9.0]}})
    assert results.has(IDS["fake"], 1)
    assert not_compared(trial, CERTIFIED) == "they begin with the synthetic batch, the certificate with data"


def test_it_is_said_why_losses_are_not_compared(tmp_path: Path) -> None:
    trial = _recorded(tmp_path / "r01.0-fake")
    assert not_compared(trial, CERTIFIED) == ""
    assert not_compared(trial, {"losses": [], "loss_limits": []}) == "the certificate has none to compare with"
    larger = replace(trial, job=replace(trial.job, schedule=replace(trial.job.schedule, batch=64)))
    assert not_compared(larger, CERTIFIED) == "they have another batch size than the certificate"
    assert not_compared(replace(trial, blocks=()), CERTIFIED) == "they did no step"


def test_a_trial_whose_losses_cannot_be_read_counts_as_failed(tmp_path: Path) -> None:
    trial = _recorded(tmp_path / "r01.0-fake")
    (trial.folder / "losses.f32").unlink()
    results = round_results.collect([trial], {IDS["fake"]: CERTIFIED})
    error = results.failed[IDS["fake"]].error
    assert error
    assert "losses.f32 cannot be read" in error[1]


def test_values_omit_failed_cases_and_include_cases_without_rounds(tmp_path: Path) -> None:
    folder = tmp_path / "r01.0-fake"
    recorded_trials.write(folder, recorded_trials.job(folder), recorded_trials.events())
    other = recorded_trials.case("other")
    results = round_results.collect([trials.read(folder), _trial("dummy", 1, 0, "error")], {})
    cases = [recorded_trials.case("fake"), recorded_trials.case("dummy"), other]
    assert results.values(cases, STEP_TIME, "cached") == {IDS["fake"]: {1: recorded_trials.STEP_NS}, other.id: {}}
    assert results.values(cases, THROUGHPUT, "cached")[IDS["fake"]][1] == 16 / (recorded_trials.STEP_NS / 1e9)
    assert results.values(cases, PEAK_MEMORY, "cached")[IDS["fake"]][1] == 1000
    # The finished trial has no first step on record, so it is left out.
    assert results.values(cases, FIRST_STEP, "cached") == {other.id: {}}


def test_a_better_value_has_a_lower_cost_for_every_quantity() -> None:
    for quantity in QUANTITIES.values():
        better, worse = (4.0, 2.0) if quantity.more_is_better else (2.0, 4.0)
        assert quantity.cost(better) < quantity.cost(worse)


OUTPUTS = {
    "outputs": {"inference1/logits": 1.0, "inference2/logits": 2.0},
    "output_limits": {"inference1/logits": 1e-6, "inference2/logits": 1e-6},
}


def _inferred(outputs: dict[str, float]) -> trials.Trial:
    trial = _trial("fake", 1, 0, "done")
    case = replace(trial.job.case, task="inference")
    return replace(trial, job=replace(trial.job, case=case), outputs=outputs)


@pytest.mark.parametrize(
    ("outputs", "sentence"),
    [
        ({"inference1/logits": 1.0, "inference2/logits": 2.0000005}, ""),
        (
            {"inference1/logits": 1.0, "inference2/logits": 2.1},
            "The output logits of batch 2 is not the certified one: its fingerprint is 2.1 instead of 2 (within 1e-06). ",
        ),
        ({"inference1/logits": 1.0}, "The output logits of batch 2 is not the certified one: its fingerprint is nan"),
    ],
)
def test_an_inference_whose_outputs_are_not_the_certified_ones_counts_as_failed(
    outputs: dict[str, float], sentence: str
) -> None:
    trial = _inferred(outputs)
    results = round_results.collect([trial], {trial.job.case.id: OUTPUTS})
    assert results.has(trial.job.case.id, 1) is not bool(sentence)
    if sentence:
        error = results.failed[trial.job.case.id].error
        assert error
        assert error[0] == "deviation"
        assert error[1].startswith(sentence)


def test_outputs_on_other_batches_than_the_certificate_are_not_compared() -> None:
    trial = _inferred({"inference1/logits": 9.0})
    trial = replace(trial, job=replace(trial.job, data=replace(trial.job.data, prepared="/prepared")))
    assert round_results.collect([trial], {trial.job.case.id: OUTPUTS}).has(trial.job.case.id, 1)
