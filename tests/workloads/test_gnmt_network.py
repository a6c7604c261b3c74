"""GNMT as data: its published counts, its synthetic batches, its predictions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from steelyard.catalog import workloads
from steelyard.inputs import weights
from steelyard.statistics import metrics
from steelyard_worker import tensors
from steelyard_worker.network import describe

PAD, BEGIN, END = 0, 2, 3
# Trainable scalars and forward multiply-accumulates of one pair of sentences.
PUBLISHED = {"wmt16": (160_634_433, 6_298_112_000), "tiny": (106_377, 1_138_688)}
# Trainable scalars of the layers of the published size.
LAYERS = {
    "embedding": 33_095_680,
    "encoder.layer0": 16_785_408,
    "encoder.layer1": 12_587_008,
    "encoder.layer2": 8_392_704,
    "encoder.layer3": 8_392_704,
    "decoder.layer0": 8_392_704,
    "attention": 2_099_201,
    "decoder.layer1": 12_587_008,
    "decoder.layer2": 12_587_008,
    "decoder.layer3": 12_587_008,
    "classifier": 33_128_000,
}


@pytest.fixture(scope="module")
def workload():
    return workloads.find()["gnmt"]


@pytest.mark.parametrize("preset", sorted(PUBLISHED))
def test_every_preset_has_the_published_size_and_cost(workload, preset):
    network = workload.network(workload.preset(preset))
    assert (network.trainable_count, network.macs) == PUBLISHED[preset]


def test_every_preset_has_published_figures(workload):
    assert set(workload.presets) == set(PUBLISHED)


def test_every_layer_has_its_published_size(workload):
    found = dict.fromkeys(LAYERS, 0)
    for each in workload.network(workload.preset("wmt16")).parameters:
        found[next(name for name in LAYERS if each.name.startswith(f"{name}."))] += each.count
    assert found == LAYERS


def test_shorter_sentences_have_the_published_cost(workload):
    preset = workload.preset("wmt16")
    sizes = {**preset.sizes, "source": 25, "target": 26}
    assert describe(workload.folder, sizes).macs == 3_187_968_000


@pytest.mark.parametrize(("preset", "bound"), [("wmt16", 0.1), ("tiny", 0.1 * 32**0.5)])
def test_the_bound_of_initial_values_depends_on_the_width(workload, preset, bound):
    initial = {each.name: each.initial for each in workload.network(workload.preset(preset)).parameters}
    synthetic = {name: each for name, each in initial.items() if name not in ("attention.b", "attention.g")}
    assert [float(each.removeprefix("uniform:")) for each in synthetic.values()] == pytest.approx(
        [bound] * len(synthetic)
    )


def test_initial_attention_has_no_bias_and_the_inverse_root_of_the_width_as_its_scale(workload, tmp_path, monkeypatch):
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))
    synthetic = tensors.read(weights.initialise(workload.network(workload.preset("tiny")).parameters, 1))
    assert not synthetic["attention.b"].any()
    assert synthetic["attention.g"] == pytest.approx([32**-0.5])


@pytest.fixture(scope="module", params=["tiny", "wmt16"])
def batch(request, workload):
    network = workload.network(workload.preset(request.param))
    return network, network.draw(np.random.default_rng(1), 7)


def test_synthetic_batches_have_the_shapes_and_types_of_the_inputs(batch):
    network, synthetic = batch
    assert {name: (array.shape, array.dtype.name) for name, array in synthetic.items()} == {
        each.name: ((7, *each.shape), each.dtype) for each in network.inputs
    }


def test_the_first_half_of_a_synthetic_batch_has_full_length_and_the_rest_is_shorter(batch):
    longest = batch[0].inputs[0].shape[0]
    lengths = batch[1]["source_length"]
    assert (lengths[:4] == longest).all()
    assert (lengths[4:] < longest).all()
    assert lengths.min() >= 2


@pytest.mark.parametrize("side", ["source", "target"])
def test_synthetic_sentences_have_begin_and_end_and_padding_after_the_end(batch, side):
    network, synthetic = batch
    vocabulary = network.inputs[0].high
    for number, sentence in enumerate(synthetic[side].tolist()):
        words, padding = sentence[: sentence.index(END)], sentence[sentence.index(END) + 1 :]
        assert words[0] == BEGIN
        assert all(END < word < vocabulary for word in words[1:])
        assert set(padding) <= {PAD}
        assert side == "target" or synthetic["source_length"][number] == len(words) + 1


def test_predictions_count_the_words_after_the_first_without_padding(workload):
    network = workload.network(workload.preset("tiny"))
    target = np.array([[BEGIN, 7, END, PAD], [BEGIN, 9, 8, END]], np.int32)
    logits = np.random.default_rng(1).standard_normal((2, 3, 200)).astype(np.float32)
    predictions = network.predictions({"logits": logits}, {"target": target})
    shares = np.exp(logits.astype(np.float64))
    shares /= shares.sum(axis=2, keepdims=True)
    expected = [
        math.log(shares[0, 0, 7] * shares[0, 1, END]),
        math.log(shares[1, 0, 9] * shares[1, 1, 8] * shares[1, 2, END]),
    ]
    assert predictions["words"].tolist() == [2, 3]
    assert predictions["nll"] == pytest.approx(-np.array(expected), rel=1e-12)


def test_the_perplexity_of_a_uniform_network_is_the_size_of_its_vocabulary(workload):
    network = workload.network(workload.preset("tiny"))
    synthetic = network.draw(np.random.default_rng(1), 4)
    predictions = network.predictions({"logits": np.zeros((4, 11, 200), np.float32)}, synthetic)
    assert metrics.score("translation", predictions)["perplexity"] == pytest.approx(200)


def test_translations_are_searched_word_by_word_from_the_words_so_far(workload):
    network = workload.network(workload.preset("tiny"))
    batch = network.draw(np.random.default_rng(1), 3)
    wanted = np.array([[7, 8, 9, END], [5, END, PAD, PAD], [6, 6, END, PAD]])
    seen = []

    def forward(given):
        seen.append(given["target"].copy())
        assert given["source"] is batch["source"]
        logits = np.zeros((3, 11, 200), np.float32)
        for row, words in enumerate(wanted):
            for place, word in enumerate(words):
                logits[row, place, word] = 50.0
        return {"logits": logits}

    found = network.write(forward, batch)
    assert found["translation"][:, :4].tolist() == wanted.tolist()
    assert not found["translation"][:, 4:].any()
    assert found["truth"].tolist() == batch["target"][:, 1:].tolist()
    assert (seen[0][:, 0] == BEGIN).all() and not seen[0][:, 1:].any()
