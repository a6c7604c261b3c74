"""What the MXNet adapter relies on: settings that are read back."""

from dataclasses import replace
from unittest import mock

from mxnet import gluon

from checks.mxnet.shared import KNOBS
from steelyard_worker.case import Settings
from steelyard_worker.frameworks.mxnet import recurrent
from steelyard_worker.frameworks.mxnet import settings as process


def check_settings_without_effect_are_reported():
    """A block that is not hybridized, one that is not cast, and an engine that was running before it was chosen."""
    settings = Settings("hybridized", precision="float64", knobs=KNOBS)
    found = process.read_back(settings)
    assert (found["mode"], found["precision"], found["engine"]) == ("hybridized", "float64", "threaded"), found
    with mock.patch.object(gluon.HybridBlock, "hybridize", lambda *_, **__: None):
        assert process.read_back(settings)["mode"] == "imperative"
    with mock.patch.object(gluon.Block, "cast", lambda *_: None):
        assert process.read_back(replace(settings, mode="imperative"))["precision"] == "float32"
    with mock.patch.object(recurrent, "Loop", recurrent.Cells):
        assert process.read_back(replace(settings, knobs=KNOBS | {"lstm": "loop"}))["lstm"] == "cell"
    with mock.patch.dict("os.environ", {"MXNET_ENGINE_TYPE": "NaiveEngine"}):
        assert process.read_back(settings)["engine"] == "threaded"
