"""The program on a node: it receives files, does one piece of work after the other, and reports. It does not use Ray.

An agent ends with the run that started it, however that ends, and its processes end with it.
"""

import os
import shutil
import tempfile
import traceback
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

from steelyard.catalog import frameworks, user_networks, workloads
from steelyard.cluster import files
from steelyard.cluster.files import Piece
from steelyard.cluster.growing import Growing
from steelyard.cluster.messages import Order, Outgoing, Reply
from steelyard.cluster.node_run import NodeRun, mapped
from steelyard.cluster.shipping import relocated
from steelyard.errors import UserError
from steelyard.files import atomic, full
from steelyard.files.paths import cache_folder
from steelyard.inputs.case_inputs import CaseInputs
from steelyard.plan.run_plan import RunPlan
from steelyard.results import trials
from steelyard.results.record import RunRecord
from steelyard_worker import tensors


class Agent:
    """The agent of a node. Methods may be called concurrently; `changes` may be repeated with the same number and order."""

    def __init__(self, node: str, key: str, run: str) -> None:
        """`key`: of the run on this node; `run`: its name."""
        self._outgoing = Outgoing()
        self._run = NodeRun(node, key, run, self._outgoing)
        self._growing = Growing(self._run.folder)
        # One thread does all work of a run, because the index of runs belongs to the thread that opened it.
        self._worker = ThreadPoolExecutor(1, "work")
        self._lock = Lock()
        self._begun: set[int] = set()
        self._arriving = Path(tempfile.mkdtemp(prefix="arriving-", dir=self._run.folder))

    def process(self) -> int:
        """Return the id of the agent's process."""
        return os.getpid()

    def changes(self, taken: int, order: Order | None) -> Reply:
        """Return the news since the reply number `taken`; waits for some seconds if there are none.

        `order`: the present work. It comes with every question until its end is known, but is begun only once.
        """
        if order:
            self._begin(order)
        return self._outgoing.reply(taken, self._growing.pieces)

    def holds(self) -> dict[str, tuple[int, str]]:
        """Return the files of processes that this node has kept from an earlier part of the run: path -> (size, SHA-256)."""
        return files.listing(self._run.folder, self._run.folder / trials.FOLDER)

    def fetch(self, path: str, begin: int) -> Piece:
        """Return one piece of a file of the run."""
        files.inside(self._run.folder, path)
        return next(files.pieces(self._run.folder, path, begin))

    def missing(self, wanted: Mapping[str, str]) -> list[str]:
        """Return the inputs that this node lacks. `wanted`: folder relative to the cache -> the hash of its arrays."""
        return [path for path, identity in wanted.items() if not _has(files.inside(cache_folder(), path), identity)]

    def lacks(self, wanted: Mapping[str, str]) -> list[str]:
        """Return the folders of sources that this node lacks, by their hashes. `wanted`: name -> hash."""
        return [name for name, code in wanted.items() if frameworks.files_hash(_sources(name, code)) != code]

    def receive(self, pieces: list[Piece]) -> None:
        """Store pieces of files until `place_inputs` or `place_sources` puts them where they belong."""
        for piece in pieces:
            files.write(self._arriving, piece)

    def place_inputs(self, path: str, identity: str) -> None:
        """Put a received tensors folder into the cache. UserError: its content differs from the announced hash."""
        arrived = files.inside(self._arriving, path)
        if not (_has_index(arrived, identity) and tensors.is_unchanged(arrived)):
            raise UserError(f"The input {path} arrived damaged, so nothing was measured with it. Start the run again.")
        atomic.place(files.inside(cache_folder(), path), lambda partial: _move(arrived, partial))

    def place_sources(self, name: str, code: str) -> None:
        """Put the received sources of a user's workload or framework into the cache. UserError: they differ from their hash."""
        arrived, target = files.inside(self._arriving, name), _sources(name, code)
        if frameworks.files_hash(arrived) != code:
            raise UserError(f"The files of {name} arrived damaged, so nothing was measured. Start the run again.")
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        arrived.rename(target)

    def prepare(self, number: int, known: RunRecord, inputs: Mapping[str, CaseInputs], own: Mapping[str, str]) -> None:
        """Begin to make and certify everything. Paths in `inputs` are relative to the cache.

        `own`: the user's frameworks, by name with their hashes.
        """
        plan = known.plan
        user_networks.allow(plan.options.silence_s)
        plan = mapped(plan, workload_folders(plan), {name: _sources(name, code) for name, code in own.items()})
        here = {key: relocated(each, cache_folder().joinpath) for key, each in inputs.items()}
        self._begin(Order(number, "prepare", (replace(known, plan=plan), here)))

    def _begin(self, order: Order) -> None:
        """Begin a piece of work that has not begun yet. Its result becomes a message."""
        with self._lock:
            if order.number in self._begun:
                return
            self._begun.add(order.number)
            self._growing.begin()
            self._worker.submit(self._work, *order)

    def partner_ended(self, kind: str, message: str) -> None:
        """Tell the attempt on this node that the ranks of another node have ended too early."""
        if self._run.followers:
            self._run.followers.ended(kind, message)

    def end_part(self, key: str) -> None:
        """End this node's ranks of a trial that another node leads, or start none. `key`: of its meeting; empty: of any."""
        self._run.ended_parts.add(key)

    def stop(self) -> None:
        """Stop the running process."""
        self._run.stop.set()

    def forget(self) -> None:
        """Remove this node's part of the record, because all of it has arrived."""
        shutil.rmtree(self._run.folder.parent, ignore_errors=True)

    def _work(self, number: int, work: str, values: tuple[Any, ...]) -> None:
        try:
            found = getattr(self._run, work)(*values)
            held: dict[str, tuple[int, str]] = {}
            for folder in self._growing.new_folders():
                held |= files.listing(self._run.folder, folder)
        except UserError as error:
            self._outgoing.add("failed", number, str(error))
        except OSError as error:
            self._outgoing.add("failed", number, self._sentence(error, work))
        except Exception as error:
            # No other thread waits for this one, so an error of the program itself is sent to the user.
            traceback.print_exc()
            self._outgoing.add("failed", number, f"{type(error).__name__}: {error}")
        else:
            self._outgoing.add("done", number, found, held)

    def _sentence(self, error: OSError, work: str) -> str:
        if error.errno in full.ERRORS:
            return full.sentence(error.filename or self._run.folder)
        return f"{error.filename or work}: {error.strerror}."


def _has(folder: Path, identity: str) -> bool:
    return atomic.is_whole(folder) and _has_index(folder, identity) and atomic.is_intact(folder)


def _has_index(folder: Path, identity: str) -> bool:
    try:
        return tensors.identity(folder) == identity
    except (OSError, ValueError):
        return False


def _move(source: Path, target: Path) -> None:
    for path in source.iterdir():
        path.rename(target / path.name)


def workload_folders(plan: RunPlan) -> dict[str, Path]:
    """Return the folders of a plan's workloads on this node: its own copy of built-in ones, and the received ones."""
    return {
        name: Path(workloads.here(folder))
        if workloads.is_built_in(folder)
        else _sources(name, plan.workload_hashes[name])
        for name, folder in plan.workload_folders.items()
    }


def _sources(name: str, code: str) -> Path:
    return cache_folder() / "cluster" / "sources" / code / name
