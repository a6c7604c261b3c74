"""A network that one scripted framework writes and a runtime runs: certified, compared, and a row with its reason where it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from finished_runs import LINE, Finished, finished
from machine_limits import share_limits

if TYPE_CHECKING:
    from finished_runs import Steelyard

pytestmark = pytest.mark.end_to_end

FRAMEWORKS = ("--frameworks", str(Path(__file__).parent / "frameworks"))
CELLS = ("-f", "fake", "-f", "runtime", "--mode", "runtime=from-fake,from-dummy", "--task", "inference")
QUICK = ("--protocol", "fixed:1+3", "--rounds", "2", "--json")


@pytest.fixture(scope="module")
def exchanged(tmp_path_factory: pytest.TempPathFactory, machine_limits: Path, shared_steelyard: Steelyard) -> Finished:
    folder = tmp_path_factory.mktemp("exchanged")
    share_limits(folder / "cache", machine_limits)
    own = {"STEELYARD_CACHE": str(folder / "cache")}
    return finished(folder, shared_steelyard(folder, "run", *LINE, *FRAMEWORKS, *CELLS, *QUICK, **own))


def test_a_network_that_was_exported_is_certified_and_measured(exchanged: Finished) -> None:
    found = exchanged.contender("runtime/from-fake")
    assert found["certificate"] == "certified"
    assert found["speeds"]["cached"]["throughput"] == pytest.approx(16 / 0.02, rel=1e-12)


def test_a_network_that_cannot_be_exported_is_a_row_with_the_reason(exchanged: Finished) -> None:
    found = exchanged.contender("runtime/from-dummy")
    assert found["failure"].startswith("The script says that this network cannot be exported. (unsupported; see ")
    page = (exchanged.folder / "report.html").read_text(encoding="utf-8")
    assert "Failed. The script says that this network cannot be exported." in page


def test_the_page_shows_the_file_and_the_largest_difference(exchanged: Finished) -> None:
    page = (exchanged.folder / "report.html").read_text(encoding="utf-8")
    assert "for 112 fixed random inputs" in page  # 100, in whole batches of 16
    row = page.partition("Exported networks</caption>")[2].partition("</tbody>")[0]
    assert ">Runtime, from-fake</th><td>fake 1</td>" in row
    assert "<td>1 Gemm</td><td>0.0e+00</td>" in row


def test_certificates_and_rounds_share_one_export(exchanged: Finished) -> None:
    used = {job["networks"] for job in _jobs(exchanged.folder, "trials") if job["case"]["framework"] == "runtime"}
    used |= {
        job["networks"] for job in _jobs(exchanged.folder, "certificates") if job["case"]["framework"] == "runtime"
    }
    folders = used - {""}  # the network that cannot be exported has none
    assert len(folders) == 1
    # One file has the weights that are timed, the other one those of the adversarial batch.
    assert sorted(path.name for path in Path(folders.pop()).glob("*.onnx")) == ["network0.onnx", "network1.onnx"]


def test_a_file_that_was_altered_is_exported_again(exchanged: Finished, shared_steelyard: Steelyard) -> None:
    own = {"STEELYARD_CACHE": str(exchanged.data_folder / "cache")}
    (path,) = (exchanged.data_folder / "cache" / "networks").glob("*/network0.onnx")
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    cells = ("-f", "fake", "-f", "runtime", "--task", "inference")
    again = shared_steelyard(exchanged.data_folder, "run", *LINE, *FRAMEWORKS, *cells, *QUICK, **own)
    assert again.returncode == 0
    assert "was changed or damaged after it was written, so it is not used." in again.stderr


def test_training_is_refused_with_what_to_do(steelyard: Steelyard) -> None:
    done = steelyard("run", *LINE, *FRAMEWORKS, "-f", "runtime", "--dry-run")
    assert done.returncode == 2
    assert (
        "Runtime runs networks that other frameworks have exported and does not train them. Use --task inference."
        in done.stderr
    )


def _jobs(run: Path, kind: str) -> list[dict[str, object]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in (run / kind).glob("**/job.json")]
