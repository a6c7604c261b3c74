"""What a certificate of an inference saves: which batches, and which weights with the adversarial one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import recorded_trials

from steelyard_worker import certify, network, tensors
from steelyard_worker.adversarial_weights import draw
from steelyard_worker.case import INFERENCE, NO_OPTIMIZER
from steelyard_worker.network import Adversarial, batch_norm
from steelyard_worker.protocol import Certify, Data

LINE = Path(__file__).parents[1] / "workloads" / "line"
SIZES = {"features": 8, "classes": 3, "batch": 16}


class Predictor:
    """A predictor whose output is the sum of all weights, plus the batch."""

    def __init__(self, weights: dict[str, Any]) -> None:
        self.weights = weights

    def put(self, batch: Any) -> Any:
        return batch

    def outputs(self, batch: Any) -> Any:
        return {"logits": batch["point"] + sum(float(array.sum()) for array in self.weights.values())}

    def state(self) -> Any:
        return self.weights


class Events(list):  # type: ignore[type-arg]
    def write(self, event: str, **values: Any) -> None:
        self.append({"event": event, **values})


def dumped(folder: Path, prepared: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the tensors and the notes of a certify task with a batch norm and a plain scale, both scaled by 4."""
    points = np.arange(160 * 8, dtype=np.float32).reshape(160, 8)
    tensors.write(folder / "synthetic", {"point": points[:16]})
    tensors.write(folder / "adversarial", {"point": points[:16] - 1})
    tensors.write(folder / "prepared", {"train/point": points})
    tensors.write(folder / "order", {"order": np.arange(160, dtype=np.int32).reshape(10, 16)})
    data = Data(str(folder / "synthetic"), adversarial=str(folder / "adversarial"))
    if prepared:
        data = replace(data, prepared=str(folder / "prepared"), order=str(folder / "order"))
    described = network.describe(LINE, SIZES)
    plain = replace(batch_norm("norm", 2)[0], name="layer_norm.gamma")
    described = replace(
        described, parameters=(*batch_norm("norm", 2), plain), adversarial=Adversarial(factors={"*.gamma": 4.0})
    )
    weights = {each.name: np.ones(2, np.float32) for each in described.parameters}
    job = recorded_trials.job(folder)
    case = replace(job.case, task=INFERENCE, optimizer=NO_OPTIMIZER)
    job = replace(job, kind="certify", case=case, data=data, certify=Certify())
    certify.dump(job, described, weights, Predictor, Events())  # type: ignore[arg-type]
    found = folder / "perturbation0"
    return tensors.read(found), tensors.read_meta(found)


def test_every_batch_of_the_data_and_the_loaded_weights_are_saved(tmp_path: Path) -> None:
    found, notes = dumped(tmp_path, prepared=True)
    batches = {key for key in found if key.startswith("inference")}
    assert batches == {f"inference{number}/logits" for number in range(1, 6)} == set(notes["fingerprints"])
    assert {key for key in found if key.startswith("after0/")} == {
        "after0/layer_norm.gamma",
        *(f"after0/norm.{kind}" for kind in ("gamma", "beta", "running_mean", "running_var")),
    }
    assert found["inference2/logits"][0, 0] == 16 * 8 + 10
    assert notes["fingerprints"]["inference2/logits"] == certify.fingerprint(found["inference2/logits"])


def test_without_data_there_is_one_batch(tmp_path: Path) -> None:
    found, _ = dumped(tmp_path, prepared=False)
    assert {key for key in found if key.startswith("inference")} == {"inference1/logits"}


def test_adversarial_scales_of_batch_norms_are_left_out_because_nothing_undoes_them(tmp_path: Path) -> None:
    found, _ = dumped(tmp_path, prepared=False)
    seed = recorded_trials.job(tmp_path).case.seed
    # Two elements each: shift and mean about as they are, the plain scale about four times as large. The variance is about the
    # epsilon, and the scale so small that the batch norm multiplies as before.
    scaled = 2 * (draw(seed, "norm.beta") + draw(seed, "norm.running_mean") + 4 * draw(seed, "layer_norm.gamma"))
    epsilon = 1e-5
    scaled += 2 * (
        epsilon * draw(seed, "norm.running_var") + (2 * epsilon / (1 + epsilon)) ** 0.5 * draw(seed, "norm.gamma")
    )
    assert found["adversarial/inference1/logits"][0, 0] == pytest.approx(-1 + scaled, rel=1e-6)
