"""The first layer that differs: which processes save inner tensors after a rejection, and which tensor the sentence names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import subjects
import synthetic
from planned import REFERENCES, changed, fill, filled, inaccurate, write_error
from synthetic import FLOAT32

from steelyard.certificates import inner
from steelyard.certificates.conclusion import conclude, next_tasks
from steelyard.certificates.method import LIMIT, RANDOM_DRAWS, method_for
from steelyard.certificates.plan import CertificationPlan, plan_certification
from steelyard_worker import tensors
from steelyard_worker.case import INFERENCE, NO_OPTIMIZER

if TYPE_CHECKING:
    from steelyard.certificates.plan import Task

NAMES = ("embedding", "readout")
KEYS = [f"{part}inner/{name}" for part in ("", "adversarial/") for name in NAMES]


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CertificationPlan:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    found = subjects.candidate("mxnet", "lstm-imdb", "tiny", tmp_path)
    return plan_certification(found, REFERENCES, tmp_path / "references")


def saved(amplified: float = 3.0) -> list[synthetic.Dump]:
    """Return inner tensors of a reference and of two noisy runs, which change by `amplified` times the noise."""
    generator = np.random.default_rng(0)
    exact = {key: np.sort(generator.standard_normal(50)) for key in KEYS}
    noisy = [
        {key: array + synthetic.shift(array, amplified * FLOAT32.noise, generator) for key, array in exact.items()}
        for _ in range(2)
    ]
    return [exact, *noisy]


def compared(runs: list[synthetic.Dump], own: synthetic.Dump) -> str:
    exact, *noisy = synthetic.as_saved(runs)
    return inner.compare(NAMES, exact, noisy, own, FLOAT32.noise, FLOAT32)


def off(key: str, units: float) -> synthetic.Dump:
    """Return the inner tensors of a candidate of which one is off by this many rounding levels."""
    runs = saved()
    size = units * 3.0 * FLOAT32.unit_roundoff
    return runs[0] | {key: runs[0][key] + synthetic.shift(runs[0][key], size, np.random.default_rng(1))}


@pytest.mark.parametrize(
    ("key", "named"),
    [
        ("inner/embedding", '"embedding": relative error 3.9e-05.'),
        ("inner/readout", '"readout": relative error 3.9e-05; "embedding", before it, matches.'),
        (
            "adversarial/inner/embedding",
            '"embedding" on the adversarial batch: relative error 3.9e-05; "readout", before it, matches.',
        ),
    ],
)
def test_the_first_inner_tensor_that_differs_is_named_with_the_one_before_it(key: str, named: str) -> None:
    assert compared(saved(), off(key, 1.1 * LIMIT)) == f" The first inner tensor that differs is {named}"
    assert compared(saved(), off(key, 0.9 * LIMIT)) == ' All 2 inner tensors match, from "embedding" to "readout".'


def test_of_several_the_first_in_network_order_is_named() -> None:
    own = off("adversarial/inner/embedding", 1e6) | {"inner/readout": np.zeros(50)}
    assert 'that differs is "readout":' in compared(saved(), own)


@pytest.mark.parametrize("array", [np.full(50, np.nan), np.zeros(49)])
def test_undefined_values_and_another_size_are_differences(array: np.ndarray) -> None:
    found = compared(saved(), saved()[0] | {"inner/readout": array})
    assert 'that differs is "readout": it has another size, or undefined values; "embedding"' in found


@pytest.mark.parametrize("who", ["reference", "candidate"])
def test_a_probe_that_an_implementation_does_not_give_is_named_and_the_others_are_compared(who: str) -> None:
    runs, own = saved(), off("inner/readout", 1e6)
    for run in runs if who == "reference" else [own]:
        for part in ("", "adversarial/"):
            del run[f"{part}inner/embedding"]
    assert compared(runs, own) == (
        ' The first inner tensor that differs is "readout": relative error 1.8e-01.'
        ' Not compared, because an implementation does not pass it to probe(): the inner tensor "embedding".'
    )


def fill_inner(pair: tuple[Task, Task], own: synthetic.Dump) -> None:
    fill(pair[0], saved())
    fill(pair[1], [own])


def test_a_rejected_forward_pass_is_examined_layer_by_layer(plan: CertificationPlan) -> None:
    runs = synthetic.dumps(network=plan.candidate.network)
    filled(plan, changed(runs, "output/logits", 1e-3))
    for number, pair in zip(RANDOM_DRAWS, plan.draw_tasks, strict=True):
        for task, run in zip(pair, (runs[0], runs[0] | changed(runs, "output/logits", 1e-3)), strict=True):
            tensors.write(Path(task.job.folder) / f"perturbation{number}", run)
    pair = next_tasks(plan)
    assert pair == inner.tasks(plan, (plan.reference_tasks[0], plan.candidate_task))
    assert [task.job.certify.perturbations for task in pair] == [(0, 1, 2), (0,)]
    assert all(task.job.certify.inner for task in pair)
    fill_inner(pair, off("inner/readout", 1e4))
    assert next_tasks(plan) == ()
    found = conclude(plan)
    assert found.first == 'the output "logits"'
    assert found.sentence.endswith(
        'The first inner tensor that differs is "readout": relative error 1.8e-03; "embedding", before it, matches.'
    )


def test_nothing_is_examined_where_the_forward_pass_matches_or_no_probes_are_listed(plan: CertificationPlan) -> None:
    runs = synthetic.dumps(network=plan.candidate.network)
    filled(plan, changed(runs, "grad/head.bias", 1e-3))
    for number, pair in zip(RANDOM_DRAWS, plan.draw_tasks, strict=True):
        for task, run in zip(pair, (runs[0], runs[0] | changed(runs, "grad/head.bias", 1e-3)), strict=True):
            tensors.write(Path(task.job.folder) / f"perturbation{number}", run)
    assert next_tasks(plan) == ()
    assert "inner tensor" not in conclude(plan).sentence
    none = replace(plan, candidate=replace(plan.candidate, network=replace(plan.candidate.network, probes=())))
    assert inner.next_tasks(none, (plan.reference_tasks[0], plan.candidate_task)) == ()


def test_the_layers_of_a_rejected_inference_are_examined_and_not_those_of_an_exported_network(
    plan: CertificationPlan,
) -> None:
    pair = (plan.reference_tasks[0], plan.candidate_task)
    job = plan.candidate.job
    infers = replace(job, case=replace(job.case, task=INFERENCE, optimizer=NO_OPTIMIZER))
    inference = replace(plan, candidate=replace(plan.candidate, job=infers))
    assert "inference output" in inner.IN_THE_FORWARD_PASS
    assert inner.next_tasks(inference, pair) == inner.tasks(inference, pair)
    exported = replace(inference, candidate=replace(inference.candidate, exporter=inference.candidate.installation))
    assert inner.next_tasks(exported, pair) == ()


@pytest.mark.parametrize(
    ("definition", "small", "rejected_on"),
    [
        (1e-4, 0.0, "float64"),
        (1e-12, 1e-4, "small4"),
        (1e-12, 0.0, "candidate"),
    ],
)
def test_inner_tensors_are_those_of_the_runs_on_which_the_candidate_was_rejected(
    plan: CertificationPlan, definition: float, small: float, rejected_on: str
) -> None:
    over = inaccurate(plan, definition, 1e-3 if rejected_on == "small4" else 1e-6, small)
    if rejected_on == "small4":
        for pair in plan.small_tasks[1:]:
            fill(pair[0], synthetic.dumps(seed=1, network=plan.candidate.network)[:1])
            fill(pair[1], [synthetic.dumps(seed=2, network=plan.candidate.network)[0]])
    reference, own = next_tasks(over)
    assert Path(own.job.folder).parent.name == rejected_on
    assert own.job.case.settings.precision == ("float64" if rejected_on == "float64" else "float32")
    assert reference.job.case.sizes == own.job.case.sizes


def test_a_failed_process_is_no_reason_to_lose_the_rejection(plan: CertificationPlan) -> None:
    over = inaccurate(plan, 1e-4, 1e-3)
    reference, own = next_tasks(over)
    fill(reference, saved())
    write_error(Path(own.job.folder), "unsupported", "The adapter of mxnet does not collect inner tensors.")
    assert next_tasks(over) == ()
    found = conclude(over)
    assert not found.passed
    assert found.sentence.startswith('Different computation even in float64, first seen in the output "logits"')
    assert found.sentence.endswith(
        "Inner tensors could not be compared: The adapter of mxnet does not collect inner tensors."
    )


def test_references_that_disagree_are_compared_layer_by_layer_in_float64(plan: CertificationPlan) -> None:
    runs = filled(plan, {})
    fill(plan.reference_tasks[1], [runs[0] | changed(runs, "output/logits", 1e-6)])
    pair = next_tasks(plan)
    assert [task.job.case.framework for task in pair] == ["pytorch", "jax"]
    fill_inner(pair, off("inner/embedding", 1.0))
    assert next_tasks(plan) == ()
    assert conclude(plan).sentence.endswith(
        'The first inner tensor that differs is "embedding": relative error 1.8e-07.'
    )
    assert method_for("float64").allowance < 1.8e-7
