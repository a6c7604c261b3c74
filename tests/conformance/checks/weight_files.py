"""A file of weights that a framework has written is read exactly, and one that does not fit is refused; no file runs code."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from steelyard_worker import checkpoints
from steelyard_worker.network import Network, Parameter, batch_norm
from steelyard_worker.protocol import Refusal

# Kinds that frameworks keep in layouts of their own; no extent is that of another axis.
NETWORK = Network(
    (
        Parameter("conv.weight", (4, 3, 2, 5), "conv", "normal"),
        *batch_norm("bn", 4),
        Parameter("cell.w_ih", (8, 3), "lstm_w_ih", "normal"),
        Parameter("cell.w_hh", (8, 2), "lstm_w_hh", "normal"),
        Parameter("cell.b", (8,), "lstm_b", "normal"),
        Parameter("head.weight", (3, 4), "dense", "normal"),
        Parameter("head.bias", (3,), "bias", "normal"),
    ),
    (),
    0,
)


def drawn():
    """Return other values for every tensor, as a training leaves them."""
    draw = np.random.default_rng(7)
    return {each.name: draw.standard_normal(each.shape).astype("f4") for each in NETWORK.parameters}


def assert_equal(found, wanted):
    """Compare all tensors bit by bit."""
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        assert np.array_equal(found[name], array), name


def refused(read, path):
    """Return the sentence with which a file is refused."""
    try:
        with checkpoints.explained(path):
            read(path)
    except Refusal as refusal:
        assert refusal.kind == "checkpoint"
        return str(refusal)
    raise AssertionError(f"{path.name} was read")


def check_exact(read, save, name):
    """`save(values, path)` writes a file, `read(path)` returns its tensors, which must be the values."""
    wanted = drawn()
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        save(wanted, path)
        assert_equal(read(path), wanted)


def check_damaged(read, save, name, damaged=""):
    """A file that was cut is refused in one sentence. `damaged`: the file that is cut, if another one."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        save(drawn(), path)
        cut = Path(folder) / (damaged or name)
        whole = cut.read_bytes()
        cut.write_bytes(whole[: len(whole) // 8])
        assert refused(read, path).startswith(f"{path.name} cannot be read (")
