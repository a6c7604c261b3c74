"""Deep Speech 2 as data: its published counts, its synthetic batches, its predictions."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.catalog import workloads
from steelyard.inputs import weights
from steelyard.inputs.data.catalogue import find
from steelyard.inputs.data.options import parse_options
from steelyard.statistics import metrics
from steelyard_worker import tensors

# Trainable scalars and forward multiply-accumulates of one utterance.
PUBLISHED = {
    "librispeech": (86_577_376, 61_685_403_680),
    "librispeech-800": (54_791_104, 41_508_232_960),
    "tiny": (42_924, 3_689_856),
    "tiny-lengths": (42_924, 3_689_856),
}
# Trainable scalars of the layers of the published size.
LAYERS = {
    "conv1": 14_496,
    "conv2": 236_608,
    "rnn1": 19_144_704,
    "rnn2": 16_787_456,
    "rnn3": 16_787_456,
    "rnn4": 16_787_456,
    "rnn5": 16_787_456,
    "head": 31_744,
}


@pytest.fixture(scope="module")
def workload():
    return workloads.find()["deepspeech2"]


@pytest.mark.parametrize("preset", sorted(PUBLISHED))
def test_every_preset_has_the_published_size_and_cost(workload, preset):
    network = workload.network(workload.preset(preset))
    assert (network.trainable_count, network.macs) == PUBLISHED[preset]


def test_every_preset_has_published_figures(workload):
    assert set(workload.presets) == set(PUBLISHED)


def test_every_layer_has_its_published_size(workload):
    found = dict.fromkeys(LAYERS, 0)
    for each in workload.network(workload.preset("librispeech")).parameters:
        found[each.name.split(".")[0]] += each.count if each.trainable else 0
    assert found == LAYERS


def test_weight_decay_applies_to_every_trained_tensor(workload):
    preset = workload.preset("tiny")
    trained = {each.name for each in workload.network(preset).parameters if each.trainable}
    assert set(workload.optimizer(preset).decay) == trained


def test_initial_recurrent_weights_are_bounded_by_the_inverse_root_of_the_width(workload, tmp_path, monkeypatch):
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))
    synthetic = weights.initialise(workload.network(workload.preset("tiny")).parameters, 1)
    bias = tensors.read(synthetic)["rnn1.backward.b"]
    assert 0.9 * 32**-0.5 < np.abs(bias).max() <= 32**-0.5


@pytest.fixture(scope="module", params=["tiny", "librispeech"])
def batch(request, workload):
    network = workload.network(workload.preset(request.param))
    return network, network.draw(np.random.default_rng(1), 6)


def test_synthetic_batches_have_the_shapes_and_types_of_the_inputs(batch):
    network, synthetic = batch
    assert {name: (array.shape, array.dtype.name) for name, array in synthetic.items()} == {
        each.name: ((6, *each.shape), each.dtype) for each in network.inputs
    }


def test_half_of_a_synthetic_batch_has_full_length_and_some_utterances_are_shorter(batch):
    longest = batch[0].inputs[0].shape[2]
    frames = batch[1]["frames"]
    assert (frames[::2] == longest).all()
    assert longest // 2 <= frames.min() < longest


def test_utterances_of_a_synthetic_set_have_all_lengths_from_a_quarter_on(batch):
    network = batch[0]
    longest = network.inputs[0].shape[2]
    frames = network.draw_set(np.random.default_rng(1), 60)["frames"]
    assert longest // 4 <= frames.min() < longest * 0.4
    assert longest * 0.9 < frames.max() <= longest
    assert abs(frames.mean() / longest - 5 / 8) < 0.1
    assert network.ranked_by == "frames"


def test_synthetic_utterances_are_zero_after_their_end(batch):
    synthetic = batch[1]
    for spectrogram, frames, transcript, letters in zip(*synthetic.values(), strict=True):
        assert not spectrogram[:, :, frames:].any()
        assert spectrogram[:, :, frames - 1].any()
        assert not transcript[letters:].any()
        assert (transcript[:letters] > 0).all()


def test_every_synthetic_transcript_can_be_aligned(batch):
    synthetic = batch[1]
    transcript = synthetic["transcript"]
    doubled = ((transcript[:, 1:] == transcript[:, :-1]) & (transcript[:, 1:] > 0)).sum(1)
    assert (synthetic["transcript_length"] + doubled <= (synthetic["frames"] + 1) // 2).all()


def test_a_typical_utterance_has_180_letters_in_635_output_frames(workload):
    network = workload.network(workload.preset("librispeech"))
    synthetic = network.draw(np.random.default_rng(1), 1)
    predictions = network.predictions({"logits": np.zeros((1, 635, 29), np.float32)}, synthetic)
    assert (synthetic["transcript_length"].item(), predictions["lengths"].item()) == (180, 635)


def test_predictions_are_the_best_class_of_every_frame_and_are_scored_up_to_the_end(workload):
    network = workload.network(workload.preset("tiny"))
    # "HI", with blank frames in between; frames after the fourth are ignored.
    heard = np.array([[9, 9, 0, 10, 5]])
    batch = {"frames": np.array([7], np.int32), "transcript": np.array([[9, 10, 0]], np.int32)}
    predictions = network.predictions({"logits": np.eye(29, dtype=np.float32)[heard]}, batch)
    assert predictions["frames"].dtype == np.int8
    assert metrics.score("speech", predictions) == {"WER": 0.0, "CER": 0.0}


@pytest.mark.parametrize("preset", ["librispeech", "librispeech-800"])
def test_prepared_utterances_have_the_shape_of_the_inputs(workload, preset):
    chosen = workload.preset(preset)
    options = {name: value for name, value in chosen.data.items() if name != "name"}
    parsed = parse_options(find(chosen.data["name"]), options)
    assert (parsed.frames, parsed.transcript) == (chosen.sizes["frames"], chosen.sizes["transcript"])
    assert parsed.window // 2 + 1 == chosen.sizes["bins"]
