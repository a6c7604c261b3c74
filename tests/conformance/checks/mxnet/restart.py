"""What the MXNet adapter relies on: rules begin anew, and the graph is kept, when a trainer is set back."""

from contextlib import contextmanager
from types import SimpleNamespace
from unittest import mock

import tomllib
from mxnet import gluon

from checks import restarts
from checks.mxnet.layers import WORKLOADS
from checks.mxnet.shared import KNOBS
from steelyard_worker import network
from steelyard_worker.case import Settings
from steelyard_worker.frameworks.mxnet import layers
from steelyard_worker.frameworks.mxnet.blocks import ConvBlock
from steelyard_worker.frameworks.mxnet.devices import DeviceTrainer
from steelyard_worker.frameworks.mxnet.pipelined import PipelinedTrainer
from steelyard_worker.frameworks.mxnet.split import SplitTrainer
from steelyard_worker.frameworks.mxnet.trainer import Trainer


class Net(gluon.HybridBlock):
    """The network of `restarts`."""

    def __init__(self):
        super().__init__(prefix="")
        self.block = ConvBlock("block.", 3, restarts.CHANNELS, 3, epsilon=restarts.EPSILON)
        self.pool = gluon.nn.GlobalAvgPool2D()
        self.head = gluon.nn.Dense(restarts.CLASSES, flatten=True, in_units=restarts.CHANNELS, prefix="head.")

    def hybrid_forward(self, F, image):
        return self.head(self.pool(self.block(image)))


IMPLEMENTATION = SimpleNamespace(
    INPUTS=("image",),
    TARGETS=("label",),
    OUTPUTS=("logits",),
    build=lambda sizes: Net(),
    variables=lambda network: dict(network.collect_params()),
    loss=layers.CrossEntropy,
)
SUBJECT = restarts.Subject(IMPLEMENTATION)
STRATEGIES = {
    "kvstore-local": lambda *arguments: DeviceTrainer("local", 2, *arguments),
    "kvstore-device": lambda *arguments: DeviceTrainer("device", 2, *arguments),
    "split": lambda *arguments: SplitTrainer(2, *arguments),
    "pipelined": lambda *arguments: PipelinedTrainer(2, *arguments),
}


class Made:
    """What makes trainers in a mode, and counts their graphs, without an adapter: that would set variables of the process."""

    def __init__(self, mode, made=Trainer):
        self._settings, self._made, self._trainers = Settings(mode, knobs=KNOBS), made, []

    def trainer(self, *arguments):
        """Return a new trainer."""
        self._trainers.append(self._made(self._settings, *arguments))
        return self._trainers[-1]

    def compilations(self):
        """Count the graphs of all trainers."""
        return sum(each.graphs for each in self._trainers)


@contextmanager
def remembering(trainer):
    """Let the trainer keep its rule."""
    with mock.patch.object(trainer, "_make_rule", lambda: trainer.rule):
        yield


def check_every_rule_begins_again():
    for mode in ("hybridized", "imperative"):
        restarts.check_rules(SUBJECT, Made(mode), remembering, {"lamb"})


def check_devices_and_parts_of_a_network_begin_again():
    for name, made in STRATEGIES.items():
        for rule, rates in (("clipped adam", None), ("momentum", restarts.RATES), ("reference adam", None)):
            try:
                restarts.check_restart(SUBJECT, Made("hybridized", made), remembering, restarts.RULES[rule], rates)
            except AssertionError as error:
                raise AssertionError(f"{name}, {rule}: {error}") from error


def check_weights_in_the_layout_of_onednn_are_set_back():
    """A forward pass in inference mode leaves weights of convolutions in it, and NumPy's arrays cannot be copied there."""
    preset = tomllib.loads((WORKLOADS / "resnet18" / "spec.toml").read_text())["presets"]["digits"]
    sizes = preset["sizes"] | {"batch": 4}
    subject = restarts.Subject(
        network.load(WORKLOADS / "resnet18", "mxnet"), network.describe(WORKLOADS / "resnet18", sizes), sizes
    )
    trainer = subject.built(Made("hybridized"), restarts.PLAIN)
    trainer.step(trainer.put(subject.batches[0]))
    trainer.outputs(trainer.put(subject.batches[0]))
    trainer.restart(subject.weights)
    for name, array in trainer.state().items():
        assert (array == subject.weights[name]).all(), name
