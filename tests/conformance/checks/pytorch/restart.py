"""What the PyTorch adapter relies on: rules forget, and the compiled step is kept, when a trainer is set back."""

from contextlib import contextmanager
from types import SimpleNamespace
from unittest import mock

import numpy as np
import tomllib
from torch import nn
from torch.nn import functional

from checks import restarts
from checks.pytorch.shared import KNOBS, WORKLOADS
from steelyard_worker import network
from steelyard_worker.case import Settings
from steelyard_worker.frameworks.pytorch import layers, optimizers
from steelyard_worker.frameworks.pytorch.adapter import Adapter
from steelyard_worker.frameworks.pytorch.blocks import ConvBlock


class Net(nn.Module):
    """The network of `restarts`."""

    def __init__(self):
        super().__init__()
        self.block = ConvBlock(3, restarts.CHANNELS, 3, epsilon=restarts.EPSILON)
        self.head = nn.Linear(restarts.CHANNELS, restarts.CLASSES)

    def forward(self, image):
        return {"logits": self.head(self.block(image).mean((2, 3)))}


IMPLEMENTATION = SimpleNamespace(
    INPUTS=("image",),
    build=lambda sizes: Net(),
    variables=layers.named_by_module,
    loss=lambda outputs, batch: functional.cross_entropy(outputs["logits"], batch["label"]),
)


def adapter_of(mode, **knobs):
    """Return an adapter with one thread."""
    return Adapter(Settings(mode, threads=1, knobs=KNOBS | knobs))


@contextmanager
def remembering(trainer):
    """Let the rule keep its memory."""
    with mock.patch.object(optimizers, "forget"):
        yield


def check_every_rule_begins_again():
    restarts.check_rules(restarts.Subject(IMPLEMENTATION), adapter_of("eager"), remembering, {"lamb"})


def check_a_compiled_step_is_kept():
    restarts.check_restart(restarts.Subject(IMPLEMENTATION), adapter_of("compiled"), remembering, restarts.MOMENTUM)


def check_rules_of_sparse_rows_begin_again():
    sizes = tomllib.loads((WORKLOADS / "lstm-imdb" / "spec.toml").read_text())["presets"]["tiny"]["sizes"]
    described = network.describe(WORKLOADS / "lstm-imdb", sizes)
    subject = restarts.Subject(network.load(WORKLOADS / "lstm-imdb", "pytorch"), described, sizes)
    restarts.check_restart(subject, adapter_of("eager", embedding="lazy"), remembering, restarts.ADAM)


def check_a_batch_norm_counts_its_batches_anew():
    subject = restarts.Subject(IMPLEMENTATION)
    trainer = subject.built(adapter_of("eager"), restarts.MOMENTUM)
    restarts.losses_and_state(trainer, subject.batches)
    counter = trainer._module.block.bn.num_batches_tracked
    assert int(counter) == len(subject.batches)
    trainer.restart(subject.weights)
    assert int(counter) == 0
    np.testing.assert_array_equal(trainer.state()["block.bn.running_mean"], subject.weights["block.bn.running_mean"])
