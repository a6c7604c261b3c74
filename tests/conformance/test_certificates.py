"""Every framework in every mode computes the reference's function, on the tiny preset of every workload."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from steelyard import frameworks, workloads

pytestmark = pytest.mark.conformance

PRESETS = ("resnet18:tiny", "lstm-imdb:tiny", "lstm-imdb:tiny-bidirectional")


def expected() -> list[str]:
    """Return the key of every cell that should be certified."""
    known = workloads.find()
    return [
        f"{group}/{name}/{mode}"
        for group in PRESETS
        for name, framework in frameworks.contenders().items()
        if name not in known[group.partition(":")[0]].unsupported
        for mode in framework.modes
    ]


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """Certify all of them by the command a user would call; returns {cell key: certificate}."""
    command = [
        sys.executable,
        "-m",
        "steelyard",
        "certify",
        "--json",
        "--plain",
        "--runs",
        str(tmp_path_factory.mktemp("runs")),
    ]
    for group in PRESETS:
        command += ["-w", group]
    for name, framework in frameworks.contenders().items():
        command += ["--mode", f"{name}={','.join(framework.modes)}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("{"), done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("cell", expected())
def test_a_cell_is_certified(certificates, cell):
    assert cell in certificates
    assert certificates[cell]["passed"], certificates[cell]["sentence"]
