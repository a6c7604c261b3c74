"""A state dict of PyTorch is read exactly, also nested and wrapped; a module, other names and lost digits are refused."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import torch
from torch import nn

from checks import weight_files
from checks.weight_files import NETWORK
from steelyard_worker.frameworks.pytorch import checkpoint, recurrent
from steelyard_worker.frameworks.pytorch.recurrent import named_by_module_and_direction


class Net(nn.Module):
    """The tensors of the network that the checks share."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 4, (2, 5), bias=False), nn.BatchNorm2d(4)
        self.cell, self.head = recurrent.Lstm(3, 2), nn.Linear(4, 3)


IMPLEMENTATION = SimpleNamespace(build=lambda sizes: Net(), variables=named_by_module_and_direction)


def read(path):
    """Return the tensors of a file."""
    return checkpoint.read(IMPLEMENTATION, {}, NETWORK, path)


def trained(values):
    """Return a module with these values."""
    module = Net()
    with torch.no_grad():
        for name, tensor in named_by_module_and_direction(module).items():
            if name in values:
                tensor.copy_(torch.from_numpy(values[name]))
    return module


def save(values, path):
    """Save a state dict."""
    torch.save(trained(values).state_dict(), path)


def check_a_state_dict_is_read_exactly():
    weight_files.check_exact(read, save, "w.pt")


def check_a_nested_and_wrapped_state_dict_is_read_exactly():
    def wrapped(values, path):
        state = {f"module._orig_mod.{name}": tensor for name, tensor in trained(values).state_dict().items()}
        torch.save({"epoch": 3, "state_dict": state, "optimizer": {"lr": 0.1}}, path)

    weight_files.check_exact(read, wrapped, "w.pt")


def check_a_damaged_file_gets_a_sentence():
    weight_files.check_damaged(read, save, "w.pt")


class Touching:
    """An object that makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def check_code_in_a_file_does_not_run():
    with TemporaryDirectory() as folder:
        made, path = Path(folder) / "made", Path(folder) / "w.pt"
        torch.save({"state_dict": Touching(str(made))}, path)
        assert "has pickled objects, such as a whole module" in weight_files.refused(read, path)
        torch.save(Net(), path)
        assert "save the weights alone with torch.save" in weight_files.refused(read, path)
        assert not made.exists()


def check_what_would_be_lost_is_refused():
    with TemporaryDirectory() as folder:
        path, state = Path(folder) / "w.pt", trained(weight_files.drawn()).state_dict()
        torch.save({**state, "cell.bias_hh_l0": torch.ones(8)}, path)
        assert "sets 'cell.bias_hh_l0', which no tensor of the network stands for" in weight_files.refused(read, path)
        torch.save({**state, "head.bias": torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)}, path)
        assert "values in 'head.bias' that float32 cannot hold" in weight_files.refused(read, path)
        torch.save({**state, "head.bias": state["head.bias"].to(torch.bfloat16)}, path)
        read(path)  # float32 holds every bfloat16
        torch.save({"epoch": 3, "best": state["head.bias"].sum().item()}, path)
        assert "holds no state dict" in weight_files.refused(read, path)


def check_names_are_strict():
    with TemporaryDirectory() as folder:
        path, state = Path(folder) / "w.pt", trained(weight_files.drawn()).state_dict()
        torch.save({name.replace("head", "fc"): tensor for name, tensor in state.items()}, path)
        sentence = weight_files.refused(read, path)
        assert sentence.startswith("w.pt does not fit the implementation in PyTorch. It lacks 'head.weight'")
        assert "It has 'fc.weight' and 'fc.bias'" in sentence
