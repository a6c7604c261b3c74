"""Networks that each framework exports are certified in ONNX Runtime; those that it cannot export have a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from test_certificates import certify

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.conformance, pytest.mark.slow]

ORIGINS = ("from-pytorch", "from-tensorflow", "from-mindspore", "from-mxnet")
NOT_EXPORTED = {"lstm-imdb:tiny/onnxruntime/from-mindspore", "resnet50:tiny/onnxruntime/from-mindspore"}


def test_every_export_computes_the_same(tmp_path: Path) -> None:
    groups = ("resnet18:tiny", "lstm-imdb:tiny", "resnet50:tiny")
    mode = f"onnxruntime={','.join(ORIGINS)}"
    found = certify(tmp_path, groups, "-f", "onnxruntime", "--mode", mode, "--task", "inference")
    assert set(found) == {f"{group}/onnxruntime/{origin}" for group in groups for origin in ORIGINS}
    refused = {key: each["sentence"] for key, each in found.items() if not each["passed"]}
    assert refused.keys() == NOT_EXPORTED, refused
