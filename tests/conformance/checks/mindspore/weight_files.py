"""A checkpoint of MindSpore is read exactly, beside an optimizer too; names that parameters share, and lost biases, are refused."""

from collections import OrderedDict
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import mindspore
import numpy as np
from mindspore import nn

from checks import weight_files
from checks.weight_files import NETWORK
from steelyard_worker.frameworks.mindspore import checkpoint, recurrent
from steelyard_worker.frameworks.mindspore.recurrent import named_by_cell_and_direction


class Net(nn.Cell):
    """The tensors of the network that the checks share."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 4, (2, 5), pad_mode="valid"), nn.BatchNorm2d(4)
        self.cell, self.head = recurrent.Lstm(3, 2), nn.Dense(4, 3)


IMPLEMENTATION = SimpleNamespace(build=lambda sizes: Net(), variables=named_by_cell_and_direction)


def read(path):
    """Return the tensors of a file."""
    return checkpoint.read(IMPLEMENTATION, {}, NETWORK, path)


def trained(values):
    """Return a cell with these values."""
    cell = Net()
    for name, parameter in named_by_cell_and_direction(cell).items():
        parameter.set_data(mindspore.Tensor(values[name]))
    return cell


def save(values, path):
    """Save a cell."""
    mindspore.save_checkpoint(trained(values), str(path))


def by_path(cell):
    """Return the parameters of a cell under the names of their places."""
    return [{"name": name, "data": parameter} for name, parameter in cell.parameters_and_names()]


def check_a_checkpoint_is_read_exactly():
    weight_files.check_exact(read, save, "w.ckpt")


def check_names_by_places_and_canonical_names_are_read_exactly():
    def canonical(values, path):
        listed = [{"name": name, "data": mindspore.Tensor(array)} for name, array in values.items()]
        mindspore.save_checkpoint(listed, str(path))

    weight_files.check_exact(
        read, lambda values, path: mindspore.save_checkpoint(by_path(trained(values)), str(path)), "w.ckpt"
    )
    weight_files.check_exact(read, canonical, "w.ckpt")


def check_the_state_of_an_optimizer_is_left_out():
    def with_state(values, path):
        listed = by_path(trained(values))
        listed += [{"name": f"moments.{each['name']}", "data": each["data"]} for each in listed]
        mindspore.save_checkpoint(
            [*listed, {"name": "learning_rate", "data": mindspore.Tensor(np.float32(0.1))}], str(path)
        )

    weight_files.check_exact(read, with_state, "w.ckpt")


def check_a_damaged_file_gets_a_sentence():
    weight_files.check_damaged(read, save, "w.ckpt")


def check_what_would_be_lost_is_refused():
    with TemporaryDirectory() as folder:
        path, cell = Path(folder) / "w.ckpt", trained(weight_files.drawn())
        cell.cell.kernel.b_hh_list[0].set_data(mindspore.Tensor(np.ones(8, np.float32)))
        mindspore.save_checkpoint(cell, str(path))
        assert "which no tensor of the network stands for, so it would be lost" in weight_files.refused(read, path)


class Twins(nn.Cell):
    """Two layers whose parameters MindSpore names alike."""

    def __init__(self):
        super().__init__()
        for number in range(2):
            self.insert_child_to_cell(f"stage{number}", nn.SequentialCell(OrderedDict(block=nn.Dense(3, 3))))


def check_names_that_parameters_share_are_refused():
    with TemporaryDirectory() as folder:
        path, cell = Path(folder) / "w.ckpt", Twins()
        names = [parameter.name for parameter in cell.get_parameters()]
        assert len(set(names)) < len(names)
        mindspore.save_checkpoint(cell, str(path))
        twins = SimpleNamespace(build=lambda sizes: Twins(), variables=lambda cell: dict(cell.parameters_and_names()))
        sentence = weight_files.refused(lambda each: checkpoint.read(twins, {}, NETWORK, each), path)
        assert "for 2 of the implementation, which MindSpore names alike; save them by their places" in sentence
