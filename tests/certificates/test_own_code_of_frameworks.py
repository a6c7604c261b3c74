"""In real frameworks: a helper beside the folder is reported, and an implementation that replaces what measures is refused."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import subjects

from steelyard.catalog.frameworks import WORKER
from steelyard.certificates.plan import plan_certification
from steelyard_worker import protocol

if TYPE_CHECKING:
    from collections.abc import Callable

HELPER = "import pathlib, sys\nsys.path.insert(0, str(pathlib.Path(__file__).parents[2]))\nimport helper\n"
ALTERED = "from steelyard_worker import timing\ntiming.monotonic = lambda own=timing.monotonic: own() // 2\n"


@pytest.mark.conformance
@pytest.mark.parametrize("framework", ["pytorch", "jax"])
def test_what_an_implementation_imports_and_replaces_is_seen(
    framework: str, interpreter: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "helper.py").write_text("factor = 1\n", encoding="utf-8")
    candidate = subjects.candidate(framework, "lstm-imdb", "tiny", tmp_path)
    plan = plan_certification(candidate, [subjects.installation("pytorch")], tmp_path / "references")
    job = plan.candidate_task.job
    ended = {}
    for name, text in {"helper": HELPER, "altered": ALTERED}.items():
        own = tmp_path / name / "lstm-imdb"
        shutil.copytree(job.workload_folder, own)
        path = own / f"{framework}.py"
        code = path.read_text(encoding="utf-8")
        place = code.index("\nimport ")  # after the future imports
        path.write_text(f"{code[:place]}\n{text}{code[place:]}", encoding="utf-8")
        given = replace(job, workload_folder=str(own), folder=str(tmp_path / name / "process"))
        Path(given.folder).mkdir()
        command = [str(interpreter(framework)), "-I", str(WORKER / "__main__.py")]
        subprocess.run(command, input=protocol.to_line(given) + "\n", text=True, capture_output=True, check=False)
        ended[name] = list(protocol.read_events(Path(given.folder) / protocol.EVENTS))
    assert ended["altered"][-1]["kind"] == "altered"
    assert ended["altered"][-1]["message"].startswith("steelyard_worker.timing.monotonic was replaced")
    assert ended["helper"][-1]["event"] == "done"
    (files,) = [event["files"] for event in ended["helper"] if event["event"] == "imported"]
    assert files == {str(tmp_path / "helper.py"): hashlib.sha256(b"factor = 1\n").hexdigest()}
