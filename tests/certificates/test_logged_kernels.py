"""oneDNN's own log shows a precision that it was allowed to use at the batch that is timed, in four frameworks.

oneDNN reads a variable here that an implementation could set. It logs what it was allowed, also on a processor without such kernels.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import subjects

from steelyard.certificates import kernels
from steelyard.measure.launch import Guard, launch
from steelyard_worker import protocol
from steelyard_worker.case import INFERENCE
from steelyard_worker.protocol import Certify

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.conformance

BFLOAT16 = {"ONEDNN_DEFAULT_FPMATH_MODE": "BF16", "DNNL_DEFAULT_FPMATH_MODE": "BF16"}
CONVOLUTIONS = 20


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow", "mindspore", "mxnet"])
@pytest.mark.parametrize(
    ("allowed", "precision"),
    [pytest.param({}, "float32", marks=pytest.mark.slow), (BFLOAT16, "bfloat16")],
    ids=["as is", "bfloat16"],
)
def test_every_convolution_of_a_network_is_in_the_log_with_its_precision(
    interpreter: Callable[[str], Path], tmp_path: Path, framework: str, allowed: dict[str, str], precision: str
) -> None:
    job = subjects.candidate(framework, "resnet18", "tiny", tmp_path, task=INFERENCE).job
    variables = job.variables | kernels.VARIABLES | allowed
    data = replace(job.data, prepared="", adversarial="")  # one batch
    job = replace(job, variables=variables, certify=Certify(steps=1), data=data)
    trial = launch(job, interpreter(framework), lambda event: None, Guard(300))
    assert trial.error is None
    kernels.condense(trial.folder)
    found = kernels.read(trial.folder)
    assert found[f"convolutions in {precision}"] == CONVOLUTIONS
    sentence = f"{CONVOLUTIONS} of {CONVOLUTIONS} convolutions ran in bfloat16"
    assert (sentence in kernels.lower(found, "float32")) == bool(allowed)
    assert "verbose" not in (trial.folder / protocol.LOG).read_text(encoding="utf-8")
