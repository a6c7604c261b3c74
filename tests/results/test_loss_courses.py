"""Contenders that train on the same batches are held against each other, and only those that can be compared."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import recorded_trials

from steelyard.certificates import sentences
from steelyard.results import loss_courses, round_results, trials
from steelyard_worker import protocol
from steelyard_worker.case import Optimizer, Settings
from steelyard_worker.strategy import Spread

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.results.round_results import RoundResults
    from steelyard.results.trials import Trial

STEPS = 200
RIGHT = 2.3 * np.exp(-np.arange(STEPS) / 60)
STOPPED = np.where(np.arange(STEPS) < 10, RIGHT, RIGHT[9])
"""As that of a network which learns nothing more from step 11 on."""


def _trial(
    root: Path, framework: str, losses: Any = RIGHT, number: int = 1, spread: Spread | None = None, **more: Any
) -> Trial:
    folder = root / f"r{number:02d}.0-{framework}"
    job = recorded_trials.job(folder, number, framework=framework, spread=spread)
    job = replace(job, case=replace(job.case, **{"inputs": "0123", "optimizer": job.case.optimizer, **more}))
    recorded_trials.write(folder, job, recorded_trials.events(blocks=(1, 10, STEPS - 11)))
    (folder / protocol.LOSSES).write_bytes(array("f", list(losses)).tobytes())
    return trials.read(folder)


def _results(found: list[Trial], **certificate: Any) -> RoundResults:
    proof = {"passed": True, "losses": [], "loss_limits": [], "declared": ""} | certificate
    return round_results.collect(found, {trial.job.case.id: proof for trial in found})


def _near(seed: int) -> Any:
    return RIGHT * np.exp(np.random.default_rng(seed).normal(0, 0.003, STEPS))


def test_the_one_that_parts_from_all_others_counts_as_failed(tmp_path: Path) -> None:
    found = [_trial(tmp_path, "a", _near(1)), _trial(tmp_path, "b", _near(2)), _trial(tmp_path, "c", STOPPED)]
    results = _results(found)
    assert results.failed.keys() == {found[2].job.case.id}
    error = results.failed[found[2].job.case.id].error
    assert error
    assert error[0] == "deviation"
    assert error[1].startswith("The losses of training steps ")
    assert "are about 1.98, but those of the other contenders on the same batches" in error[1]
    assert results.partings == ()
    assert all(results.has(each.job.case.id, 1) for each in found[:2])


def test_of_two_that_part_neither_is_left_out(tmp_path: Path) -> None:
    found = [_trial(tmp_path, "a", _near(1)), _trial(tmp_path, "b", STOPPED)]
    results = _results(found)
    assert not results.failed
    (parting,) = results.partings
    assert {*parting.cases, *parting.apart} == {each.job.case.id for each in found}
    assert parting.sentence.startswith("Their losses part, though they train on the same batches: training steps ")
    assert parting.sentence.endswith("One of them may not go on as it was certified, and nothing here says which.")


def test_two_modes_of_one_framework_do_not_outvote_another_framework(tmp_path: Path) -> None:
    modes = [
        _trial(tmp_path / mode, "a", STOPPED, settings=Settings("scripted", knobs={"mode": mode}))
        for mode in ("x", "y")
    ]
    results = _results([*modes, _trial(tmp_path, "b", _near(1))])
    assert not results.failed
    assert len(results.partings) == 1


def test_all_rounds_of_a_contender_are_looked_at(tmp_path: Path) -> None:
    found = [_trial(tmp_path, name, _near(seed), number) for seed, name in enumerate("abc") for number in (1, 2)]
    found.append(_trial(tmp_path, "c", STOPPED, 3))
    results = _results(found)
    assert results.failed.keys() == {found[-1].job.case.id}
    assert results.has(found[-1].job.case.id, 2)
    assert not results.has(found[-1].job.case.id, 3)


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 2},
        {"inputs": "4567"},
        {"sizes": {"features": 8, "classes": 3, "batch": 32}},
        {"specification": "f"},
        {"settings": Settings("scripted", precision="float64")},
        {"spread": Spread("processes", "", "ranks"), "strategy": "x:2"},
        {"inputs": ""},
        {"task": "inference"},
        {"spread": Spread("asynchronous", "", "ranks"), "strategy": "x:2"},
    ],
)
def test_other_batches_and_other_computations_are_not_compared(tmp_path: Path, other: dict[str, Any]) -> None:
    found = [_trial(tmp_path, "a", _near(1)), _trial(tmp_path, "b", _near(2)), _trial(tmp_path, "c", STOPPED, **other)]
    results = _results(found)
    assert not results.failed
    assert results.partings == ()


@pytest.mark.parametrize("certificate", [{"passed": False}, {"on_purpose": "another algorithm"}])
def test_what_is_not_certified_is_not_compared(tmp_path: Path, certificate: dict[str, Any]) -> None:
    found = [_trial(tmp_path, "a", _near(1)), _trial(tmp_path, "b", _near(2)), _trial(tmp_path, "c", STOPPED)]
    assert not _results(found, **certificate).failed
    assert not round_results.collect(found, {}).failed


def test_update_rules_of_another_form_are_not_compared(tmp_path: Path) -> None:
    found = [_trial(tmp_path, "a", _near(1)), _trial(tmp_path, "b", _near(2)), _trial(tmp_path, "c", STOPPED)]
    proofs = {each.job.case.id: {"passed": True, "losses": [], "declared": ""} for each in found}
    proofs[found[2].job.case.id]["declared"] = "As in the framework's own optimizer, epsilon is added elsewhere."
    assert not round_results.collect(found, proofs).failed
    proofs[found[2].job.case.id]["declared"] = f"{loss_courses.CORRECTION_ALONE} is computed in float32."
    assert round_results.collect(found, proofs).failed


def test_losses_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    found = [_trial(tmp_path, "a", _near(1)), _trial(tmp_path, "b", _near(2)), _trial(tmp_path, "c", STOPPED)]
    (found[1].folder / protocol.LOSSES).unlink()
    assert not _results(found).failed


def test_the_words_of_a_certificate_about_its_update_rule_are_recognised() -> None:
    def declared(**form: str) -> str:
        return sentences.optimizer_form(Optimizer("adam", 0.1, **form))  # type: ignore[arg-type]

    assert declared(correction="float32").startswith(loss_courses.CORRECTION_ALONE)
    assert not declared(form="epsilon-hat").startswith(loss_courses.CORRECTION_ALONE)
    assert not declared(form="epsilon-hat", correction="float32").startswith(loss_courses.CORRECTION_ALONE)
