"""What the PyTorch adapter relies on: layers and the loss."""

import numpy as np
import tomllib
import torch

from checks import ctc_golden
from checks.pytorch.shared import WORKLOADS
from steelyard_worker import batches, network


def check_running_variance_is_unbiased():
    layer = torch.nn.BatchNorm1d(2, momentum=0.1)
    layer(torch.arange(8.0).reshape(4, 2))
    np.testing.assert_allclose(layer.running_mean, (0.3, 0.4), rtol=1e-6)
    np.testing.assert_allclose(layer.running_var, (1.566667, 1.566667), rtol=1e-6)


def check_ctc_agrees_with_the_enumeration_of_all_paths():
    loss = network.load(WORKLOADS / "deepspeech2", "pytorch").loss

    def found(logits, batch):
        logits = torch.from_numpy(logits).requires_grad_()
        value = loss({"logits": logits}, {name: torch.from_numpy(array).long() for name, array in batch.items()})
        value.backward()
        return value.detach(), logits.grad

    ctc_golden.compare(found)


def check_deep_speech_infers_the_same_from_batches_that_are_cut():
    """In training its batch norms count padded frames; Tacotron 2 reads the embedding of padding, so it differs in inference, too."""
    torch.manual_seed(0)
    found = {}
    for name in ("deepspeech2", "tacotron2"):
        folder = WORKLOADS / name
        sizes = tomllib.loads((folder / "spec.toml").read_text())["presets"]["tiny-lengths"]["sizes"]
        described, implementation = (
            network.describe(folder, sizes),
            network.load_implementation(folder, name, "pytorch"),
        )
        drawn = described.draw_set(np.random.default_rng(5), 4)
        cut = {each.name: tuple(each.lengths.items()) for each in described.inputs if each.lengths}
        module = implementation.build(sizes)
        for training in (False, True):
            module.train(training)
            short, long = (
                _first_output(module, implementation.INPUTS, batches.Split(drawn, cut=each)) for each in (cut, {})
            )
            assert short.numel() < long.numel()
            long = long[tuple(map(slice, short.shape))]
            found[name, training] = float((short - long).norm() / long.norm())
    assert found["deepspeech2", False] < 1e-6, found
    assert min(found[key] for key in found if key != ("deepspeech2", False)) > 1e-4, found


def _first_output(module, inputs, split):
    """Return the first output for all samples of a split."""
    placed = {name: torch.from_numpy(array) for name, array in split.take(np.arange(len(split))).items()}
    return next(iter(module(*[placed[name] for name in inputs]).values()))
