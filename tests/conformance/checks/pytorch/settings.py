"""What the PyTorch adapter relies on: settings that are read back."""

from dataclasses import replace
from unittest import mock

import torch

from checks.pytorch.shared import KNOBS
from steelyard_worker.case import Settings
from steelyard_worker.frameworks.pytorch import recurrent
from steelyard_worker.frameworks.pytorch import settings as process


def check_onednn_can_be_switched_off():
    settings = Settings("eager", knobs=KNOBS | {"onednn": False})
    try:
        process.apply(settings)
        assert process.read_back(settings)["onednn"] is False
    finally:
        process.apply(replace(settings, knobs=KNOBS))
    assert process.read_back(settings)["onednn"] is True


def check_subnormal_numbers_are_kept_or_flushed():
    """With one thread, because others keep what they began with; a run reads it back before there are any."""
    threads = torch.get_num_threads()
    settings = Settings("eager", threads=1, knobs=KNOBS | {"subnormals": "flushed"})
    try:
        process.apply(settings)
        assert process.read_back(settings)["subnormals"] == "flushed"
        with mock.patch.object(torch, "set_flush_denormal", lambda _: False):  # a processor that cannot
            process.apply(replace(settings, knobs=KNOBS))
            assert process.read_back(settings)["subnormals"] == "flushed"
    finally:
        process.apply(replace(settings, threads=threads, knobs=KNOBS))
    assert process.read_back(settings)["subnormals"] == "kept"


def check_subnormal_numbers_that_some_threads_flush_are_reported():
    halves = torch.tensor([0.0, 5e-41])
    with mock.patch.object(torch.Tensor, "mul", lambda *_: halves):
        assert process.read_back(Settings("eager", knobs=KNOBS))["subnormals"] == "partly flushed"


def check_cuda_graphs_are_read_back():
    """The compiler's configuration shows them without a GPU, and their absence where the options are ignored."""
    settings = Settings("compiled", knobs=KNOBS | {"cuda_graphs": True})
    assert process.read_back(settings)["cuda_graphs"] is True
    for other in (replace(settings, knobs=KNOBS), replace(settings, mode="eager")):
        assert process.read_back(other)["cuda_graphs"] is False
    usual = torch.compile
    with mock.patch.object(torch, "compile", lambda function, **options: usual(function, dynamic=options["dynamic"])):
        assert process.read_back(settings)["cuda_graphs"] is False


def check_settings_without_effect_are_reported():
    """A module that is not converted, and a compiler that is disabled by TORCHDYNAMO_DISABLE."""
    settings = Settings("compiled", precision="float64", knobs=KNOBS)
    found = process.read_back(settings)
    assert (found["mode"], found["precision"], found["layout"]) == ("compiled", "float64", "channels-last"), found
    with mock.patch.object(torch.nn.Module, "to", lambda self, *_, **__: self):
        found = process.read_back(settings)
    assert (found["precision"], found["layout"]) == ("float32", "channels-first"), found
    with mock.patch.object(recurrent, "choose"):
        assert process.read_back(replace(settings, knobs=KNOBS | {"lstm": "loop"}))["lstm"] == "fused"
    with mock.patch.dict("os.environ", {"TORCHDYNAMO_DISABLE": "1"}):
        assert process.read_back(settings)["mode"] == "eager"
