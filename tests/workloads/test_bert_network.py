"""BERT as data: parameters and costs of the published sizes, synthetic batches, and predictions."""

import math

import numpy as np
import pytest
import tomllib

from steelyard.catalog.frameworks import WORKER
from steelyard.statistics import metrics
from steelyard_worker.network import Network, describe

FOLDER = WORKER / "workloads" / "bert"
PRESETS = tomllib.loads((FOLDER / "spec.toml").read_text(encoding="utf-8"))["presets"]
# Trainable scalars and forward multiply-accumulates of one sample.
COUNTS = {
    "wikitext": (110_106_428, 11_654_831_616),
    "cn-wiki": (102_882_442, 11_510_539_776),
    "tiny": (177_898, 3_752_576),
    "tiny-tanh": (177_898, 3_752_576),
}


def network(preset: str) -> Network:
    return describe(FOLDER, PRESETS[preset]["sizes"])


def test_every_preset_has_its_counts():
    assert {name: (network(name).trainable_count, network(name).macs) for name in PRESETS} == COUNTS


def test_only_the_biases_of_keys_have_zero_gradients_and_each_layer_has_one():
    found = [each.name for each in network("wikitext").parameters if each.zero_gradient]
    assert found == [f"layer{number}.attention.key.bias" for number in range(12)]


def test_biases_and_layer_norms_have_no_weight_decay():
    decay = tomllib.loads((FOLDER / "spec.toml").read_text(encoding="utf-8"))["optimizers"]["adamw"]["decay"]
    spared = {each.name.rpartition(".")[2] for each in network("tiny").parameters if each.kind not in decay}
    assert spared == {"bias", "gamma", "beta"}


@pytest.mark.parametrize("preset", ["wikitext", "tiny"])
def test_synthetic_samples_are_padded_at_the_end_and_masked_within_their_length(preset: str):
    found, sizes = network(preset), PRESETS[preset]["sizes"]
    batch = found.draw(np.random.default_rng(3), 64)
    assert {name: (array.dtype.name, array.shape[1:]) for name, array in batch.items()} == {
        each.name: (each.dtype, each.shape) for each in found.inputs
    }
    lengths = batch["input_mask"].sum(axis=1)
    assert (np.diff(batch["input_mask"], axis=1) <= 0).all()
    assert lengths.min() < lengths.max() == sizes["length"]
    assert (batch["input_ids"][batch["input_mask"] == 0] == 0).all()
    assert (batch["segment_ids"][batch["input_mask"] == 0] == 0).all()
    assert batch["input_ids"].max() < sizes["vocabulary"]
    assert 0 < batch["segment_ids"].mean() < 1
    for places, weights, length in zip(batch["masked_lm_positions"], batch["masked_lm_weights"], lengths, strict=True):
        used = places[weights > 0]
        assert used.size >= 1
        assert (np.diff(used) > 0).all()
        assert 0 < used[0] <= used[-1] < length - 1
        assert set(weights.tolist()) <= {0.0, 1.0}
    assert 0 < batch["masked_lm_weights"].mean() < 1


def test_predictions_count_used_positions_only_and_fit_the_metric():
    logits = np.zeros((2, 2, 3), np.float32)
    logits[0, 0] = (0, 4, 0)
    logits[1, 1] = (9, 0, 0)
    outputs = {"words": logits, "next": np.array([[1, 0], [1, 0]], np.float32)}
    batch = {
        "masked_lm_ids": np.array([[1, 2], [1, 0]], np.int32),
        "masked_lm_weights": np.array([[1, 1], [1, 0]], np.float32),
        "next_sentence_label": np.array([0, 1], np.int32),
    }
    found = network("tiny").predictions(outputs, batch)
    assert found["words"].tolist() == [2, 1]
    assert found["right"].tolist() == [1, 0]
    assert found["next_right"].tolist() == [1, 0]
    sure = math.log(math.exp(4) + 2) - 4
    assert np.allclose(found["nll"], [sure + math.log(3), math.log(3)], atol=1e-6)
    scores = metrics.score("masked-language", found)
    assert scores["masked words"] == pytest.approx(1 / 3)
    assert scores["perplexity"] == pytest.approx(math.exp((sure + 2 * math.log(3)) / 3), rel=1e-6)
    assert scores["next sentence"] == 0.5


def test_large_logits_do_not_overflow_in_predictions():
    outputs = {"words": np.full((1, 1, 4), 1e4, np.float32), "next": np.zeros((1, 2), np.float32)}
    batch = {
        "masked_lm_ids": np.zeros((1, 1), np.int32),
        "masked_lm_weights": np.ones((1, 1), np.float32),
        "next_sentence_label": np.zeros(1, np.int32),
    }
    assert network("tiny").predictions(outputs, batch)["nll"].tolist() == pytest.approx([math.log(4)], rel=1e-5)
