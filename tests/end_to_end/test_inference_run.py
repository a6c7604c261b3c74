"""`steelyard run --task inference` with scripted frameworks: certificate, exact numbers, page, and trials that deviate."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from finished_runs import LINE, WORKLOADS, Finished, finished

if TYPE_CHECKING:
    from pathlib import Path

    from finished_runs import CommandLine, Steelyard

pytestmark = pytest.mark.end_to_end

TASK = ("--task", "inference", "-f", "fake", "-f", "dummy", "--rounds", "2", "--json")


@pytest.fixture(scope="module")
def inferred(tmp_path_factory: pytest.TempPathFactory, shared_steelyard: Steelyard) -> Finished:
    """A certified run of two rounds: Fake at 10 ms, Dummy at 12 ms per batch."""
    data_folder = tmp_path_factory.mktemp("inferred")
    knobs = ("--knob", "fake.step_us=10000", "--knob", "dummy.step_us=12000")
    return finished(data_folder, shared_steelyard(data_folder, "run", *LINE, *TASK, *knobs))


def test_throughput_and_latencies_are_the_scripted_ones(inferred: Finished) -> None:
    for variant, milliseconds in (("fake/scripted", 10), ("dummy/scripted,step_us=12000", 12)):
        contender = inferred.contender(variant)
        assert contender["certificate"] == "certified"
        assert contender["speeds"]["cached"]["throughput"] == pytest.approx(16e3 / milliseconds, rel=1e-12)
        for name in ("latency p50", "latency p95", "latency p99"):
            assert contender["latencies"][name]["value_ns"] == pytest.approx(1e6 * milliseconds, rel=1e-12)
            assert contender["latencies"][name]["processes"] == 2


def test_the_certificate_compares_parameters_and_outputs_and_records_fingerprints(inferred: Finished) -> None:
    certificates = json.loads((inferred.folder / "certificates.json").read_text(encoding="utf-8"))
    for each in certificates.values():
        assert (each["task"], each["optimizer"]) == ("inference", {})
        assert each["tensors"] == 4  # two parameters, the outputs of a batch and of the adversarial batch
        assert each["losses"] == []
        assert each["outputs"].keys() == each["output_limits"].keys() == {"inference1/logits"}


def test_the_run_is_ranked_by_a_latency_on_a_page_of_its_own(inferred: Finished, cli: CommandLine) -> None:
    page = inferred.folder / "p95.html"
    code, out, _ = cli("report", str(inferred.folder), "--quantity", "latency p95", "--output", str(page))
    assert code == 0
    assert "Fake has the lowest latency p95." in " ".join(out.split())
    assert "Ranked by latency p95: less is better." in page.read_text(encoding="utf-8")


def test_a_forward_pass_that_differs_is_rejected_with_the_batch(steelyard: Steelyard, tmp_path: Path) -> None:
    shutil.copytree(WORKLOADS / "line", tmp_path / "mine" / "line")
    path = tmp_path / "mine" / "line" / "dummy.py"
    path.write_text(path.read_text(encoding="utf-8").replace('+ parameters["head.bias"]}', "}"), encoding="utf-8")
    own = ("--workloads", str(tmp_path / "mine"), "-w", "line", "--plain", "--json", "-f", "dummy", "-f", "fake")
    done = steelyard("certify", *own, "--task", "inference")
    assert done.returncode == 1
    assert 'the output \\"logits\\" of batch 1' in done.stdout


def test_an_optimizer_is_refused_for_an_inference(cli: CommandLine) -> None:
    code, _, err = cli("run", *LINE, "--task", "inference", "--optimizer", "adam", "--dry-run")
    assert code == 2
    assert "An optimizer has no effect on inference, which updates nothing." in err
