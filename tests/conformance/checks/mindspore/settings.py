"""What the MindSpore adapter relies on: settings that are read back."""

from types import SimpleNamespace
from unittest import mock

import mindspore

from steelyard_worker import network
from steelyard_worker.case import Settings
from steelyard_worker.frameworks.mindspore import onednn, recurrent, runtime
from steelyard_worker.protocol import Refusal


def check_networks_with_any_kind_of_convolution_disable_avx512():
    for kind, disables in (("conv", True), ("conv1d", True), ("dense", False)):
        parameters = [network.Parameter(name, (2, 2), each, "zeros") for name, each in (("a", "dense"), ("b", kind))]
        with (
            mock.patch.object(onednn, "_leave_avx512_alone") as disabled,
            mock.patch.object(onednn, "_effective", return_value=0),
        ):
            onednn.Instructions("auto").decide(SimpleNamespace(parameters=parameters))
        assert disabled.called == disables, kind


def check_instructions_that_the_processor_lacks_are_refused():
    with mock.patch.object(onednn, "_effective", return_value=0):
        try:
            raise AssertionError(onednn.Instructions("on").applied())
        except Refusal as refused:
            assert "no AVX-512" in str(refused)
    with mock.patch.object(onednn, "_effective", return_value=onednn.AVX512):
        assert onednn.Instructions("on").applied()["avx512"] == "on"


def check_settings_without_effect_are_reported():
    """A context that does not apply the mode, and a oneDNN that uses AVX-512 although it should be off."""
    modes = [runtime.MODES[name] for name in ("graph", "pynative")]
    before = mindspore.get_context("mode")
    try:
        for name, mode in runtime.MODES.items():
            mindspore.set_context(mode=next(other for other in modes if other != mode))
            with mock.patch.object(mindspore, "set_context"), mock.patch.object(runtime, "_set_device"):
                runtime.apply(Settings(name))
            assert runtime.applied()["mode"] != name
    finally:
        mindspore.set_context(mode=before)
    with (
        mock.patch.object(onednn, "_effective", return_value=onednn.AVX512),
        mock.patch.object(onednn, "_leave_avx512_alone"),
    ):
        assert onednn.Instructions("off").applied()["avx512"] == "on"
    with mock.patch.object(recurrent, "Loop", recurrent.Cells):
        assert recurrent.implementation_of("loop") == "cell"
