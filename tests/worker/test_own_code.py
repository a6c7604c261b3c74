"""What an implementation imports from elsewhere is reported, and what it replaces of the worker ends its process."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from worker.scripted_training import LINE, SIZES, points

from steelyard.catalog import frameworks
from steelyard.catalog.frameworks import WORKER
from steelyard.plan.protocols import protocol
from steelyard_worker import batches, certify, distances, evaluation, imported, inference, measure, tensors, untouched
from steelyard_worker import protocol as border
from steelyard_worker.case import Case, Optimizer, Settings
from steelyard_worker.protocol import Job

SETTINGS = frameworks.framework("fake").complete(Settings("scripted"))
HELPER = "import os, sys\nsys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))\n"
FEW = {"inputs": ("cached",), "evaluate": False, "turns": 0}


@dataclass(frozen=True)
class Ran:
    """How a process ended: its last event, what it imported, whether tensors of a certificate can be used, and all it measured."""

    last: dict[str, Any]
    files: dict[str, str]
    usable: bool
    blocks: list[tuple[Any, ...]]


def run(folder: Path, text: str, kind: str = "measure", **more: Any) -> Ran:
    """Run a job of the smallest workload, whose implementation begins with this text."""
    shutil.copytree(LINE, folder / "line")
    own = folder / "line" / "fake.py"
    own.write_text(f"{text}\n{own.read_text()}")
    (folder / "data").mkdir()
    data = replace(points(folder / "data"), synthetic=str(folder / "synthetic"))
    tensors.write(
        folder / "weights", {"head.weight": certify.np.ones((3, 8), "f4"), "head.bias": certify.np.zeros(3, "f4")}
    )
    tensors.write(folder / "synthetic", {"point": certify.np.ones((16, 8), "f4"), "label": certify.np.zeros(16, "i4")})
    case = Case("line", "small", SIZES, "", {}, Optimizer("sgd", 0.1), "fake", SETTINGS)
    job = Job(
        kind,
        case,
        str(folder / "line"),
        str(folder / "weights"),
        data,
        str(folder / "trial"),
        schedule=replace(protocol("fixed:2+5").schedule, **FEW),
        spawned_ns=1,
        **more,
    )
    command = [sys.executable, "-I", str(WORKER / "__main__.py")]
    subprocess.run(command, input=border.to_line(job) + "\n", text=True, capture_output=True, check=False)
    events = list(border.read_events(folder / "trial" / border.EVENTS))
    return Ran(
        events[-1],
        next((each["files"] for each in events if each["event"] == imported.EVENT), {}),
        (folder / "trial" / "perturbation0" / tensors.INDEX).exists(),
        [(each["phase"], each["steps"], each["elapsed_ns"]) for each in events if each["event"] == "samples"],
    )


def test_an_implementation_that_stays_in_its_folder_imports_nothing_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "line").mkdir()
    (tmp_path / "line").rmdir()
    ran = run(tmp_path, "import importlib, json, numpy.linalg, wave")
    assert (ran.last["event"], ran.files) == ("done", {})


@pytest.mark.parametrize("kind", ["measure", "certify"])
def test_a_helper_beside_the_folder_is_reported_with_its_content_and_where_links_lead(
    tmp_path: Path, kind: str
) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "helper.py").write_text("factor = 1\n")
    (tmp_path / "helper.py").symlink_to(tmp_path / "kept" / "helper.py")
    ran = run(tmp_path, f"{HELPER}import helper", kind)
    content = hashlib.sha256(b"factor = 1\n").hexdigest()
    assert ran.files == {str((tmp_path / "kept" / "helper.py").resolve()): content}
    assert ran.last["event"] == "done"


def test_a_module_that_hides_one_of_the_environment_is_reported(tmp_path: Path) -> None:
    (tmp_path / "yaml.py").write_text("def load(): ...\n")
    (tmp_path / "wave.py").write_text("def open(): ...\n")
    ran = run(tmp_path, f"{HELPER}import wave, yaml")
    assert [Path(path).name for path in ran.files] == ["wave.py", "yaml.py"]


def test_the_implementation_of_another_framework_is_reported_because_no_hash_of_this_ones_files_has_it(
    tmp_path: Path,
) -> None:
    shared = "import os, sys\nsys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))\nimport extra, dummy"
    (tmp_path / "extra").mkdir()
    ran = run(tmp_path, shared.replace("extra, ", ""))
    assert [Path(path).name for path in ran.files] == ["dummy.py"]


def test_what_the_process_that_exported_a_network_has_imported_counts_as_well(tmp_path: Path) -> None:
    events = border.EventWriter(tmp_path / border.EVENTS, lambda: 0)
    events.write(imported.EVENT, files={"/home/u/helper.py": "a" * 64})
    events.close()
    assert imported._of_exporter(_job(tmp_path)) == {"/home/u/helper.py": "a" * 64}


def _job(networks: Path) -> Job:
    case = Case("line", "small", SIZES, "", {}, Optimizer("sgd", 0.1), "fake", SETTINGS)
    return Job("measure", case, "", "", border.Data(""), "", networks=str(networks))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import time; time.perf_counter_ns = lambda: 5", "time.perf_counter_ns"),
        ("import time; time.process_time_ns = lambda: 5", "time.process_time_ns"),
        ("from steelyard_worker import timing; timing.monotonic = lambda: 5", "steelyard_worker.timing.monotonic"),
        ("from steelyard_worker import timing; timing.time_block = print", "steelyard_worker.timing.time_block"),
        ("from steelyard_worker import timing; timing.Recorder.keep = print", "steelyard_worker.timing.Recorder.keep"),
        ("from steelyard_worker import certify; certify.sampled = print", "steelyard_worker.certify.sampled"),
        ("import numpy; numpy.linalg.norm = lambda *a: 0.0", "numpy.linalg.norm"),
        ("import builtins; own = open; builtins.open = lambda *a, **k: own(*a, **k)", "builtins.open"),
    ],
)
def test_what_measures_records_or_compares_and_was_replaced_ends_the_process_by_its_name(
    tmp_path: Path, text: str, name: str
) -> None:
    last = run(tmp_path, text).last
    assert (last["event"], last["kind"]) == ("error", "altered")
    assert last["message"].startswith(f"{name} was replaced after the implementation was loaded, ")


def test_tensors_that_such_a_process_has_saved_cannot_be_used(tmp_path: Path) -> None:
    for name in ("plain", "altered"):
        (tmp_path / name).mkdir()
    assert run(tmp_path / "plain", "", "certify").usable
    ran = run(tmp_path / "altered", "import numpy; numpy.linalg.norm = lambda *a: 1.0", "certify")
    assert (ran.last["kind"], ran.usable) == ("altered", False)


@pytest.mark.parametrize(
    "text",
    [
        "import json; json.dumps = lambda *a, **k: '{}'",
        "import numpy; numpy.load = None; numpy.random.seed(0); numpy.seterr(all='ignore')",
        "import builtins; builtins.print = lambda *a, **k: None",
        "import os; os.chdir('/'); os.umask(0); os.environ['A'] = 'b'",
        "import atexit, gc, random; gc.disable(); random.seed(0); atexit.register(lambda: 1 / 0)",
        "import signal, warnings; warnings.simplefilter('error'); signal.signal(signal.SIGTERM, signal.SIG_IGN)",
        "import logging, sys; logging.disable(); sys.setrecursionlimit(500); sys.stdout = sys.stderr = None",
    ],
)
def test_what_reaches_no_result_is_left_alone_and_changes_nothing(tmp_path: Path, text: str) -> None:
    for name in ("plain", "own"):
        (tmp_path / name).mkdir()
    plain, own = run(tmp_path / "plain", ""), run(tmp_path / "own", text)
    assert own.last["event"] == "done"
    assert own.blocks == plain.blocks
    assert own.blocks


def test_every_function_of_numpy_that_the_worker_computes_with_is_watched() -> None:
    used = set[str]()
    for module in (batches, certify, distances, evaluation, inference, measure, tensors):
        used |= set(re.findall(r"\bnp\.(\w+)\(", Path(str(module.__file__)).read_text(encoding="utf-8")))
    functions = {name for name in used if not isinstance(getattr(certify.np, name), type)}
    assert functions <= {*untouched.NUMPY, "issubdtype"}
