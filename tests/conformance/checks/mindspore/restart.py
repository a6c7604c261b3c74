"""What the MindSpore adapter relies on: rules forget, and the compiled step is kept, when a trainer is set back."""

from contextlib import contextmanager
from types import SimpleNamespace
from unittest import mock

import mindspore
from mindspore import nn, ops

from checks import restarts
from checks.mindspore.shared import KNOBS
from steelyard_worker.case import Settings
from steelyard_worker.frameworks.mindspore import layers, optimizers, runtime
from steelyard_worker.frameworks.mindspore.blocks import ConvBlock
from steelyard_worker.frameworks.mindspore.trainer import Trainer


class Net(nn.Cell):
    """The network of `restarts`."""

    def __init__(self):
        super().__init__()
        self.block = ConvBlock(3, restarts.CHANNELS, 3, epsilon=restarts.EPSILON)
        self.head = nn.Dense(restarts.CHANNELS, restarts.CLASSES)

    def construct(self, image):
        return (self.head(ops.mean(self.block(image), (2, 3))),)


IMPLEMENTATION = SimpleNamespace(
    INPUTS=("image",),
    TARGETS=("label",),
    OUTPUTS=("logits",),
    build=lambda sizes: Net(),
    variables=layers.named_by_cell,
    loss=layers.CrossEntropy,
)
SUBJECT = restarts.Subject(IMPLEMENTATION)
# To compile a step takes as long as all other checks of a rule together. These differ in what they keep.
IN_GRAPHS = ("momentum", "nesterov", "clipped adam", "adamw", "reference momentum", "reference adam")
AT_RATES = ("momentum", "adamw")


def adapter_of(mode):
    """Return what makes trainers in a mode, without an adapter: that would set the process's threads."""
    settings = Settings(mode, knobs=KNOBS)
    return SimpleNamespace(trainer=lambda *arguments: Trainer(settings, *arguments), compilations=runtime.compilations)


@contextmanager
def remembering(trainer):
    """Let the rule keep its memory, and the trainer its count of steps."""
    steps = trainer._steps
    with mock.patch.object(optimizers, "forget"):
        yield
    trainer._steps = steps


def check_rules_begin_again_in_the_same_graph():
    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    rules = {name: restarts.RULES[name] for name in IN_GRAPHS}
    restarts.check_rules(SUBJECT, adapter_of("graph"), remembering, rules=rules, scheduled=AT_RATES)


def check_every_rule_begins_again_without_a_graph():
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    lacking = {"lamb", "reference momentum at rates", "reference adam at rates"}
    try:
        restarts.check_rules(SUBJECT, adapter_of("pynative"), remembering, lacking)
    finally:
        mindspore.set_context(mode=mindspore.GRAPH_MODE)
