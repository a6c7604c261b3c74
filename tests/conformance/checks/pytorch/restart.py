"""What the PyTorch adapter relies on: rules forget, and the compiled step is kept, when a trainer is set back."""

from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import torch

from checks import restarts
from checks.pytorch.shared import KNOBS
from steelyard_worker.case import Settings
from steelyard_worker.frameworks.pytorch import optimizers
from steelyard_worker.frameworks.pytorch.adapter import Adapter


@contextmanager
def remembering(trainer):
    """Let the rule keep its memory."""
    with mock.patch.object(optimizers, "forget"):
        yield


def check_every_rule_begins_again_with_a_new_trainers_losses():
    lacking = {"lamb", "reference lamb at rates"} - {"reference lamb at rates"}
    restarts.check_rules("pytorch", Adapter(Settings("eager", knobs=KNOBS)), remembering, lacking)


def check_sparse_rows_begin_again():
    adapter, subject = Adapter(Settings("eager", knobs=KNOBS | {"embedding": "lazy"})), restarts.Subject("pytorch")
    restarts.check_restart(subject, adapter, remembering, restarts.ADAM)
    restarts.check_restart(subject, adapter, remembering, restarts.PLAIN, memory=False)


def check_a_compiled_step_is_kept_with_its_statistics_at_their_first_values():
    subject = restarts.Subject("pytorch", "resnet18", restarts.IMAGES)
    adapter = Adapter(Settings("compiled", knobs=KNOBS))
    restarts.check_restart(subject, adapter, remembering, replace(restarts.MOMENTUM, learning_rate=0.01))
    trainer = subject.built(Adapter(Settings("eager", knobs=KNOBS)), restarts.MOMENTUM)
    restarts.losses_and_state(trainer, subject.batches)
    counters = [
        module.num_batches_tracked for module in trainer._module.modules() if isinstance(module, torch.nn.BatchNorm2d)
    ]
    assert {int(each) for each in counters} == {len(subject.batches)}
    trainer.restart(subject.weights)
    assert {int(each) for each in counters} == {0}
