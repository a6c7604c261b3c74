"""Records of real runs of the command line with scripted frameworks, whose steps take a scripted time.

What is not scripted, such as the time of imports, differs each time that they are made.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from recorded import MACHINE

from steelyard.files.paths import cache_folder
from steelyard.results import record

if TYPE_CHECKING:
    from collections.abc import Callable

TESTS = Path(__file__).resolve().parents[1]
WORKLOADS = TESTS / "workloads"
LINE = ("--workloads", str(WORKLOADS), "-w", "line", "--no-guard", "--plain")
PRESET = """
[presets.digits]
summary = "Digits"
optimizer = "{optimizer}"
[presets.digits.sizes]
features = 784
classes = 10
batch = 16
[presets.digits.data]
name = "mnist-5k"
mean = [0.5]
std = [0.5]
"""
SAMPLES = 200
USERS_CACHE = cache_folder()
CREATED = "2026-01-02T03:04:05+00:00"
# What no report reads: the tensors of certificates, processes of searches, and traces in the formats of the frameworks.
UNREAD = ("certificates", "probes", "profiles/*/profile/plugins", "profiles/*/profile/trace.json.gz")


def _steelyard(root: Path, *arguments: str, **variables: str) -> dict[str, Any]:
    """Run a command with its own folders; returns what it prints as JSON."""
    own = {"STEELYARD_CACHE": str(root / "cache"), "STEELYARD_RUNS": str(root), "PYTHONPATH": str(TESTS.parent / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "steelyard", *arguments, "--json"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **own, "STEELYARD_LOCKS": "", **variables},
    )
    if done.returncode not in (0, 3):
        raise SystemExit(f"steelyard {' '.join(arguments)} ended with {done.returncode}: {done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _kept(root: Path, name: str, *arguments: str) -> Path:
    """Run a command and keep its run under a name; returns its folder."""
    return named(Path(_steelyard(root, *arguments)["folder"]), name, root)


def named(folder: Path, name: str, root: Path) -> Path:
    """Move a run into `root/runs` under a name, without what no report reads, and as if a machine of no one had measured it."""
    for unread in UNREAD:
        for path in folder.glob(unread):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (root / "runs").mkdir(exist_ok=True)
    kept = Path(shutil.move(folder, root / "runs" / name))
    text = (kept / record.FILE).read_text().replace(folder.name, name)
    raw = json.loads(text)
    raw |= {
        "created": CREATED,
        "identity": "0011223344556677",
        "allowed": "",
        "machine": "0123456789abcdef",
        "host": dict(MACHINE),
    }
    raw["peak"] = {precision: {"numpy": 100.0} for precision in raw["peak"]}
    raw["bandwidth"] = dict.fromkeys(raw["bandwidth"], 10.0)
    raw["seconds"] = {name: float(place + 1) for place, name in enumerate(raw["seconds"])}
    (kept / record.FILE).write_text(json.dumps(raw, indent=1))
    return kept


def search(root: Path) -> None:
    """Settings of Fake that were tried, and measured anew beside a rival."""
    knobs = ("--knob", "fake.step_us=10000", "--knob", "dummy.step_us=10000")
    start = _steelyard(root, "run", *LINE, "-f", "fake", "-f", "dummy", *knobs, "--rounds", "2")["folder"]
    steps = ("--knob", "step_us=9000,5000,14000,8000,11000", "--knob", "fault=none,nan")
    _kept(root, "search", "advise", "--tune", "fake", "--run", start, *steps, "--minutes", "3", "--plain")
    shutil.rmtree(start)


def ranks(root: Path) -> None:
    """One process, two ranks, and two that exchange nothing, certified and profiled."""
    strategies = [part for each in ("single:1", "processes:2", "alone:2") for part in ("--strategy", each)]
    _kept(root, "ranks", "run", *LINE, "-f", "fake", "--threads", "1", *strategies, "--rounds", "3", "--profiles", "1")


def faults(root: Path) -> None:
    """Processes that fail in every way, and one that does not."""
    kinds = "none,nan,die,unsupported,import,frozen,timed,repeat"
    knobs = ("--knob", f"fake.fault={kinds}", "--knob", "dummy.step_us=12000", "--protocol", "fixed:3+30")
    _kept(root, "faults", "run", *LINE, "-f", "fake", "-f", "dummy", *knobs, "--rounds", "2")


def exported(root: Path) -> None:
    """A network that one framework writes and a runtime runs, and one that cannot be exported."""
    cells = ("-f", "fake", "-f", "runtime", "--mode", "runtime=from-fake,from-dummy", "--task", "inference")
    folder = ("--frameworks", str(TESTS / "end_to_end" / "frameworks"))
    _kept(root, "exported", "run", *LINE, *folder, *cells, "--protocol", "fixed:1+3", "--rounds", "2")


def memory(root: Path) -> None:
    """The largest batch within a limit, found by a search."""
    limit = ("--set", "features=10000", "--no-certify", "--protocol", "largest-batch:2", "--memory-limit", "400MB")
    _kept(root, "memory", "run", *LINE, "-f", "fake", *limit)


def learning(root: Path) -> None:
    """Trainings of whole epochs with three seeds and thresholds, evaluated after each."""
    _trained(
        root,
        "learning",
        "--seed",
        "1,2,3",
        "--protocol",
        "total:4",
        "--rounds",
        "1",
        "-f",
        "fake",
        "-f",
        "dummy",
        "--knob",
        "dummy.step_us=20000",
    )


def diverged(root: Path) -> None:
    """Trainings whose losses become infinite in one framework, at a learning rate that is too large."""
    options = ("--seed", "1,2,3", "--protocol", "total:4", "--rounds", "1", "-f", "fake", "-f", "dummy")
    _trained(root, "diverged", *options, "--knob", "dummy.step_us=20000", optimizer="sgd")


def epochs(root: Path) -> None:
    """Trainings of whole epochs on real data in several rounds, with ranks that do not wait for each other."""
    strategies = [part for each in ("single:1", "processes:2", "alone:2") for part in ("--strategy", each)]
    options = ("--protocol", "total:3", "--rounds", "3", "-f", "fake", "--threads", "1")
    folder = _trained(root, "epochs", *options, *strategies)
    for path in folder.glob("trials/*alone*/job.json"):
        job = json.loads(path.read_text())
        job["spread"]["kind"] = "asynchronous"
        job["spread"]["shares"] = "batch"
        path.write_text(json.dumps(job))
    proofs = json.loads((folder / record.CERTIFICATES).read_text())
    for proof in proofs.values():
        proof["passed"] = True
    (folder / record.CERTIFICATES).write_text(json.dumps(proofs))


def frameworks(root: Path) -> None:
    """Two real frameworks on a small network, with real profiles; made only where it is named, from the environments of the user."""
    options = (
        "--protocol",
        "fixed:3+10",
        "--rounds",
        "2",
        "--profiles",
        "1",
        "--minutes",
        "4",
        "--plain",
        "--no-guard",
    )
    (root / "cache").rmdir()
    (root / "cache").symlink_to(USERS_CACHE)
    found = _steelyard(root, "run", "-f", "pytorch", "-f", "jax", "-w", "resnet18:tiny", *options)
    (root / "cache").unlink()
    named(Path(found["folder"]), "frameworks", root)


def _trained(root: Path, name: str, *options: str, optimizer: str = "adam") -> Path:
    """Train the workload `line` on small pictures, each bright in one row of its own for its class."""
    own = shutil.copytree(WORKLOADS / "line", root / "own" / "line", ignore=shutil.ignore_patterns("__pycache__"))
    (own / "spec.toml").write_text((own / "spec.toml").read_text() + PRESET.format(optimizer=optimizer))
    for file, old, new in (
        ("network.py", 'Input("point", (features,)', 'Input("image", (1, 28, 28)'),
        ("fake.py", 'batch["point"]', 'batch["image"].reshape(len(batch["image"]), -1)'),
        ("dummy.py", 'batch["point"]', 'batch["image"].reshape(len(batch["image"]), -1)'),
    ):
        (own / file).write_text((own / file).read_text().replace(old, new))
    generator = np.random.default_rng(3)
    pictures, labels = generator.integers(0, 60, (SAMPLES, 28, 28)), np.arange(SAMPLES) % 10
    for picture, label in zip(pictures, labels, strict=True):
        picture[2 * label + 4] += 60
    (root / "digits").mkdir()
    rows = np.hstack([pictures.reshape(SAMPLES, -1), labels[:, None]])
    np.savetxt(root / "digits" / "mnist_5k.csv.gz", rows, fmt="%d", delimiter=",")
    where = ("-w", "line:digits", "--workloads", str(own.parent), "--data", str(root / "digits"))
    folder = _kept(root, name, "run", *where, "--threshold", "0.5,0.9,0.999", "--no-guard", "--plain", *options)
    shutil.rmtree(root / "own")
    shutil.rmtree(root / "digits")
    return folder


MAKERS: dict[str, Callable[[Path], None]] = {
    each.__name__: each for each in (search, ranks, faults, exported, memory, learning, diverged, epochs, frameworks)
}
