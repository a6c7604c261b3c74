"""Tacotron 2 as data: parameters and costs of the published sizes, synthetic batches, and predictions."""

import math

import numpy as np
import pytest
import tomllib

from steelyard.catalog.frameworks import WORKER
from steelyard.statistics import metrics
from steelyard_worker.network import Network, describe, load

FOLDER = WORKER / "workloads" / "tacotron2"
SPEC = tomllib.loads((FOLDER / "spec.toml").read_text(encoding="utf-8"))
PRESETS = SPEC["presets"]
# Trainable scalars and forward multiply-accumulates of one sample.
COUNTS = {"ljspeech": (26_081_105, 12_434_398_464), "tiny": (65_309, 1_289_088), "tiny-lengths": (65_309, 1_289_088)}


def network(preset: str) -> Network:
    return describe(FOLDER, PRESETS[preset]["sizes"])


def test_every_preset_has_its_counts():
    assert {name: (network(name).trainable_count, network(name).macs) for name in PRESETS} == COUNTS


def test_parts_have_the_parameters_of_the_specification():
    parts: dict[str, int] = {}
    for each in network("ljspeech").parameters:
        first, second, *_ = each.name.split(".")
        part = f"{first}.{second}" if first == "decoder" or second == "lstm" else first
        parts[part] = parts.get(part, 0) + each.count * each.trainable
    assert parts == {
        "embedding": 75_776,
        "encoder": 3_935_232,
        "encoder.lstm": 1_574_912,
        "prenet": 86_016,
        "decoder.lstm1": 7_344_128,
        "decoder.lstm2": 8_392_704,
        "attention": 201_824,
        "frame": 122_960,
        "gate": 1_537,
        "postnet": 4_346_016,
    }


def test_weight_decay_applies_to_every_trained_tensor():
    decay = SPEC["optimizers"]["adam"]["decay"]
    assert {each.kind for each in network("tiny").parameters if each.trainable} == set(decay)


@pytest.mark.parametrize("preset", PRESETS)
def test_synthetic_utterances_are_zero_after_their_lengths_and_every_second_is_full(preset: str):
    found, sizes = network(preset), PRESETS[preset]["sizes"]
    batch = found.draw(np.random.default_rng(3), sizes["batch"])
    assert {name: (array.dtype.name, array.shape[1:]) for name, array in batch.items()} == {
        each.name: (each.dtype, each.shape) for each in found.inputs
    }
    for name, longest in (("text", sizes["characters"]), ("mel", sizes["frames"])):
        lengths, values = batch[f"{name}_length"], batch[name]
        inside = np.arange(longest) < lengths[:, None]
        assert (lengths[::2] == longest).all()
        assert longest // 2 <= lengths.min() < longest
        filled = values != 0 if name == "text" else (values != 0).all(axis=1)
        np.testing.assert_array_equal(filled, inside)
    assert batch["text"].max() < sizes["symbols"]


def test_clips_of_a_synthetic_set_have_all_lengths_and_about_as_many_frames_per_character():
    found = network("ljspeech")
    batch = found.draw_set(np.random.default_rng(3), 60)
    text, mel = batch["text_length"], batch["mel_length"]
    assert 25 <= text.min() < 40 < 90 < text.max() <= 100
    assert 126 <= mel.min() < mel.max() <= 566
    assert np.abs(mel / (5.66 * text) - 1).max() < 0.11
    assert found.ranked_by == "mel_length"
    np.testing.assert_array_equal((batch["mel"] != 0).all(axis=1).sum(axis=1), mel)


def test_a_length_may_be_the_whole_axis():
    highs = {each.name: each.high for each in network("tiny").inputs}
    assert (highs["text_length"], highs["mel_length"]) == (13, 25)


def test_predictions_are_the_losses_of_each_utterance():
    batch = network("tiny").draw(np.random.default_rng(1), 3)
    generator = np.random.default_rng(2)
    outputs = {name: generator.standard_normal((3, 16, 24), dtype=np.float32) for name in ("mel", "mel_post")}
    outputs["gate"] = 30 * generator.standard_normal((3, 24), dtype=np.float32)
    found = load(FOLDER, "network").predictions(outputs, batch)
    for n in range(3):
        squares = [((outputs[name][n].astype(float) - batch["mel"][n]) ** 2).mean() for name in ("mel", "mel_post")]
        entropy = 0.0
        for t in range(24):
            ended = t >= batch["mel_length"][n] - 1
            logit = float(outputs["gate"][n, t]) * (-1 if ended else 1)
            entropy += max(logit, 0) + math.log1p(math.exp(-abs(logit)))
        np.testing.assert_allclose([found["mel"][n], found["gate"][n]], [sum(squares), entropy / 24], rtol=1e-6)
    scores = metrics.score(SPEC["metric"], found)
    np.testing.assert_allclose(scores["mel loss"], found["mel"].mean())
