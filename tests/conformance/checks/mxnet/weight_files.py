"""Saved parameters of MXNet are read exactly, by attributes and by names; lost biases and other names are refused."""

from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn

from checks import weight_files
from checks.weight_files import NETWORK
from steelyard_worker.frameworks.mxnet import checkpoint, recurrent
from steelyard_worker.frameworks.mxnet.recurrent import KINDS


class Net(gluon.HybridBlock):
    """The tensors of the network that the checks share."""

    def __init__(self):
        super().__init__(prefix="")
        self.conv = nn.Conv2D(4, (2, 5), in_channels=3, use_bias=False, prefix="conv.")
        self.bn = nn.BatchNorm(in_channels=4, prefix="bn.")
        self.cell = recurrent.Lstm("cell", 3, 2, 1)
        self.head = nn.Dense(3, in_units=4, prefix="head.")


def variables(block):
    """Map canonical names to parameters, without the second bias of the LSTM."""
    found = {}
    for name, parameter in block.collect_params().items():
        kind = name.removeprefix("cell.")
        if not name.startswith("cell."):
            found[name] = parameter
        elif kind in KINDS:
            found[f"cell.{KINDS[kind]}"] = parameter
    return found


IMPLEMENTATION = SimpleNamespace(build=lambda sizes: Net(), variables=variables)


def read(path):
    """Return the tensors of a file."""
    return checkpoint.read(IMPLEMENTATION, {}, NETWORK, path)


def trained(values):
    """Return a block with these values."""
    block = Net()
    block.initialize(mx.init.Zero())
    for name, parameter in variables(block).items():
        parameter.set_data(mx.nd.array(values[name]))
    return block


def save(values, path):
    """Save a block as its users do."""
    trained(values).save_parameters(str(path))


def check_saved_parameters_are_read_exactly():
    weight_files.check_exact(read, save, "w.params")
    weight_files.check_exact(read, lambda values, path: trained(values).collect_params().save(str(path)), "w.params")


def check_a_damaged_file_gets_a_sentence():
    weight_files.check_damaged(read, save, "w.params")


def check_what_would_be_lost_is_refused():
    with TemporaryDirectory() as folder:
        path, block = Path(folder) / "w.params", trained(weight_files.drawn())
        (second,) = [each for name, each in block.collect_params().items() if name.endswith("h2h_bias")]
        second.set_data(mx.nd.ones(8))
        block.save_parameters(str(path))
        assert "which no tensor of the network stands for, so it would be lost" in weight_files.refused(read, path)


def check_names_are_strict():
    with TemporaryDirectory() as folder:
        path = Path(folder) / "w.params"
        mx.nd.save(str(path), {"fc.weight": mx.nd.ones((3, 4))})
        assert weight_files.refused(read, path).startswith(
            "w.params does not fit the implementation in MXNet. It lacks "
        )
        mx.nd.save(str(path), [mx.nd.ones((3, 4))])
        assert "holds arrays without names" in weight_files.refused(read, path)
