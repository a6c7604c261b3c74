"""The second part of a certificate: one step with scaled weights, a batch of its own and an update rule that shows every term."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from steelyard_worker import adversarial_weights, certify, network, protocol, tensors
from steelyard_worker.case import Case, Optimizer, Settings
from steelyard_worker.network import Adversarial, Isolation
from steelyard_worker.protocol import Certify, Data, Job, Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard_worker.batches import Batch

LINE = Path(__file__).parents[1] / "workloads" / "line"
SIZES = {"features": 8, "classes": 3, "batch": 4}
WEIGHTS = {"head.weight": np.full((3, 8), 0.5, np.float32), "head.bias": np.zeros(3, np.float32)}
BATCH = {"point": np.ones((4, 8), np.float32), "label": np.zeros(4, np.int32)}
EXTREME = {"point": np.full((4, 8), 8, np.float32), "label": np.array([0, 2, 0, 2], np.int32)}


class Trainer:
    """Records what it is built with and given; a step adds the learning rate to every weight."""

    def __init__(self, weights: Mapping[str, np.ndarray[Any, Any]], rule: Optimizer) -> None:
        self.weights, self.rule = {name: np.array(array) for name, array in weights.items()}, rule
        self.first = self.weights
        self.given: list[Batch] = []

    def put(self, batch: Batch) -> Batch:
        return batch

    def gradients(self, batch: Batch) -> tuple[Batch, float, Batch]:
        return {"logits": np.zeros((4, 3))}, 0.5, self.weights

    def step(self, batch: Batch) -> float:
        self.given.append(batch)
        self.weights = {name: array + self.rule.learning_rate for name, array in self.weights.items()}
        return float(batch["point"].mean())

    def synchronise(self) -> None: ...

    def losses(self, handles: list[float]) -> list[float]:
        return handles

    def state(self) -> Batch:
        return dict(self.weights)

    def outputs(self, batch: Batch) -> Batch:
        return {"logits": np.zeros((4, 3))}


def dumped(
    folder: Path,
    adversarial: bool,
    batch: int = 4,
    inner: bool = False,
    trainer: type[Trainer] = Trainer,
    isolation: Isolation | None = None,
    perturbations: tuple[int, ...] = (0,),
    events: Any = None,
) -> tuple[Batch, list[Trainer]]:
    """Return the tensors of a certificate's first run, and the trainers that were built for it."""
    rule = Optimizer("adam", 1e-3, weight_decay=1e-5, decay=("head.weight",), clip=5.0)
    case = Case("line", "small", SIZES | {"batch": batch}, "", {}, rule, "fake", Settings("scripted"))
    tensors.write(folder / "usual", BATCH)
    tensors.write(folder / "extreme", EXTREME)
    data = Data(str(folder / "usual"), adversarial=str(folder / "extreme") if adversarial else "")
    wanted = Certify(steps=2, inner=inner, perturbations=perturbations)
    job = Job("certify", case, str(LINE), "", data, str(folder), certify=wanted)
    described = replace(
        network.describe(LINE, SIZES),
        adversarial=Adversarial(factors={"*.weight": 4.0, "head.*": 2.0}, clip=1.0, isolation=isolation),
        probes=("scores",),
    )
    built: list[Trainer] = []

    def build(weights: Mapping[str, np.ndarray[Any, Any]], optimizer: Optimizer = rule) -> Trainer:
        built.append(trainer(weights, optimizer))
        return built[-1]

    certify.dump(job, described, WEIGHTS, build, events or SimpleNamespace(write=lambda *_, **__: None))
    return tensors.read(folder / f"perturbation{perturbations[0]}"), built


def test_each_computation_is_an_event_because_one_may_take_minutes(tmp_path: Path) -> None:
    written: list[tuple[str, dict[str, Any]]] = []
    events = SimpleNamespace(write=lambda kind, **more: written.append((kind, more)))
    dumped(tmp_path, adversarial=True, events=events)
    names = [more.get("name", kind) for kind, more in written]
    steps = ["step", "synchronise"]
    assert names == ["gradients", *steps, *steps, "outputs", "outputs", *steps, "tensors"]
    assert all(more["elapsed_ns"] >= 0 for kind, more in written if kind == "phase")


def test_one_step_starts_from_scaled_weights_with_a_batch_and_a_rule_of_its_own(tmp_path: Path) -> None:
    found, built = dumped(tmp_path, adversarial=True)
    extreme = built[-1]
    np.testing.assert_array_equal(extreme.given[0]["point"], EXTREME["point"])
    assert len(extreme.given) == 1
    assert found["adversarial/loss1"] == 8
    start = found["adversarial/after0/head.weight"][0, 0]
    assert start == np.float32(0.5) * np.float32(4 * adversarial_weights.draw(0, "head.weight"))
    assert found["adversarial/after1/head.weight"][0, 0] == start + 1
    assert found["adversarial/after0/head.weight"].dtype == np.float32
    rule = extreme.rule
    assert (rule.learning_rate, rule.epsilon, rule.weight_decay, rule.clip) == (1, 1, 2**-7, 1)
    assert built[0].rule.learning_rate == 1e-3
    assert found["after0/head.weight"][0, 0] == 0.5


def test_weights_that_isolate_a_layer_have_a_step_of_their_own_with_the_same_batch_and_rule(tmp_path: Path) -> None:
    isolation = Isolation(("*.weight",), factors={"head.weight": 0.0}, ramps={"*.bias": 4.0})
    found, built = dumped(tmp_path, adversarial=True, isolation=isolation)
    assert len(built) == 5
    extreme, isolated = built[3:]
    assert isolated.given[0] is extreme.given[0]
    assert isolated.rule == extreme.rule
    assert not found["isolated/after0/head.weight"].any()
    assert (found["isolated/after1/head.weight"] == 1).all()
    assert not [key for key in found if key.startswith("isolated/") and "bias" in key]
    assert found["isolated/after0/head.weight"].dtype == isolated.first["head.bias"].dtype == np.float32
    np.testing.assert_allclose(isolated.first["head.bias"], [-10 / 3, -2 / 3, 2], rtol=1e-6)
    assert 1.8 < found["adversarial/after0/head.weight"][0, 0] < 2
    assert found["isolated/loss1"] == found["adversarial/loss1"] == 8


def test_of_runs_after_the_first_only_the_distances_from_it_are_saved(tmp_path: Path) -> None:
    whole, _ = dumped(tmp_path / "alone", adversarial=True, perturbations=(2,))
    first, _ = dumped(tmp_path / "together", adversarial=True, perturbations=(0, 1, 2))
    noisy = tensors.read(tmp_path / "together" / "perturbation2")
    assert noisy.keys() == first.keys() == whole.keys()
    assert all(array.shape == () for array in noisy.values())
    start = float(np.linalg.norm(whole["after0/head.weight"] - first["after0/head.weight"]))
    assert noisy["after0/head.weight"] == pytest.approx(start) != 0
    # The scripted step adds the same to every weight, so the change since the start is that of the first run but for rounding.
    assert noisy["after2/head.weight"] < 0.1 * start
    assert noisy["adversarial/after1/head.weight"] < 0.1 * float(noisy["adversarial/after0/head.weight"])
    assert noisy["grad/head.weight"] == pytest.approx(start)


@pytest.mark.parametrize("count", range(1, 40))
def test_no_value_of_a_ramp_is_zero_where_a_relu_has_its_kink(count: int) -> None:
    values = adversarial_weights.ramp(np.zeros(count, np.float32), 4.0)
    assert (abs(values) <= 4).all()
    assert values.all()
    assert (np.diff(values) > 0).all()


def test_a_job_without_an_adversarial_batch_saves_the_usual_tensors_only(tmp_path: Path) -> None:
    found, built = dumped(tmp_path, adversarial=False)
    assert len(built) == 3  # of the gradients, of the steps, and of inference before training
    assert not [name for name in found if name.startswith("adversarial/")]


def test_a_batch_names_its_folder_in_the_job() -> None:
    job = Job(
        "certify",
        Case("", "", {}, "", {}, Optimizer("sgd", 1), "", Settings("")),
        "",
        "",
        Data("a", adversarial="b"),
        "",
    )
    assert protocol.from_line(protocol.to_line(job)).data.adversarial == "b"


def test_a_case_with_a_smaller_batch_takes_its_first_samples(tmp_path: Path) -> None:
    _, built = dumped(tmp_path, adversarial=True, batch=2)
    np.testing.assert_array_equal(built[-1].given[0]["label"], [0, 2])


class Probed(Trainer):
    """Gives the first weight times the input as an inner tensor, and one that the network does not list."""

    def inner(self, batch: Batch, names: frozenset[str]) -> Batch:
        assert names == {"scores"}
        return {"scores": batch["point"] * self.weights["head.weight"][0, 0] * np.arange(8, 0, -1)}


def test_inner_tensors_are_saved_with_sorted_values_for_both_batches(tmp_path: Path) -> None:
    found, built = dumped(tmp_path, adversarial=True, inner=True, trainer=Probed)
    assert set(found) == {"inner/scores", "adversarial/inner/scores"}
    np.testing.assert_array_equal(found["inner/scores"], np.repeat(np.arange(1, 9) * 0.5, 4))
    drawn = adversarial_weights.draw(0, "head.weight")
    expected = np.repeat(np.arange(1, 9) * 16.0 * drawn, 4)
    np.testing.assert_allclose(found["adversarial/inner/scores"], expected, rtol=1e-6)
    assert not any(each.given for each in built)


def test_an_adapter_that_collects_no_inner_tensors_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="The adapter of fake does not collect inner tensors"):
        dumped(tmp_path, adversarial=True, inner=True)
