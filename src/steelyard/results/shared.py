"""A store that several machines share: a PostgreSQL database with the records of runs, their index and their points.

The run folders remain authoritative. The store is brought up to date from them whenever that is possible, so a server that
cannot be reached loses nothing.
"""

from __future__ import annotations

import re
import shutil
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Self, TypeVar

from steelyard.errors import UserError, notice
from steelyard.files import paths
from steelyard.files.folders import NAME_ERRORS
from steelyard.results import addresses, identity, index_rows, points, record, run_folders, trials
from steelyard.results.index_rows import SCHEMA, SCHEMA_VERSION, Statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from steelyard.results.identity import HeldRun
    from steelyard.results.points import Point, RunFacts

Made = TypeVar("Made")
NAMESPACE = "steelyard"
ABOUT = f"steelyard store, version {SCHEMA_VERSION}"
# A server that does not answer must not hold up a nightly job.
TIMES: dict[str, Any] = {"connect_timeout": 10, "tcp_user_timeout": 30_000, "options": "-c statement_timeout=300000"}
LATER = "The run folders hold everything: the store is brought up to date the next time."


@dataclass
class Pushed:
    """Names of runs that were stored, and a sentence for each that could not be."""

    stored: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


class _DamagedRun(Exception):
    """The rows of a run in a store cannot be written as a run folder."""


class Shared:
    """A connection to a shared store. Missing tables are created. UserError: the store cannot be used."""

    def __init__(self, url: str) -> None:
        addresses.check(url)
        import psycopg

        self._url, self.shown = url, addresses.shown(url)
        with self._told():
            self._database = psycopg.connect(url, autocommit=True, **TIMES)
            try:
                self._prepare()
            except BaseException:
                self._database.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            raise UserError(
                f"The store {self.shown} cannot be used ({addresses.reason(error, self._url)}). {LATER}"
            ) from None

    def _prepare(self) -> None:
        with self._database.transaction():
            self._lock(NAMESPACE)
            row = self._database.execute(
                "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s", [NAMESPACE]
            ).fetchone()
            if row and row[0] != ABOUT:
                from steelyard.version import VERSION

                held = f"'{row[0]}'" if row[0] else f"a schema {NAMESPACE} that something else has made"
                raise UserError(
                    f"The store {self.shown} holds {held}, and steelyard {VERSION} on this machine writes '{ABOUT}'. "
                    "Use this version on all machines, or another database."
                )
            if not row:
                self._database.execute(f"CREATE SCHEMA {NAMESPACE}; COMMENT ON SCHEMA {NAMESPACE} IS '{ABOUT}'")
            self._database.execute(f"SET search_path TO {NAMESPACE}")
            if not row:
                self._database.execute(SCHEMA.read_bytes())
        self._database.execute(f"SET search_path TO {NAMESPACE}")

    def _lock(self, name: str) -> None:
        """Wait until no other process works on the same thing; released at the end of the transaction."""
        self._database.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"{NAMESPACE} {name}"])

    def push(self, runs: Path) -> Pushed:
        """Store every run of a folder that the store lacks or has in an earlier state. Runs in progress are left for later.

        UserError: the connection broke; runs that were stored before stay.
        """
        done = Pushed()
        with self._told():
            present = self._states()
        for name in run_folders.names(runs):
            try:
                run = identity.held(runs / name)
                if run_folders.state(run.folder, run.known) == "running" or present.get(run.identity) == _state(run):
                    continue
                if self._stored(run):
                    done.stored.append(name)
            except UserError as error:
                if self._database.closed:
                    raise
                done.left_out.append(f"Run {name} was not stored: {error}")
            except OSError as error:
                where = error.filename or runs / name
                done.left_out.append(f"Run {name} was not stored: {where} cannot be read ({error.strerror}).")
            except ValueError as error:  # the name of a file that no text can hold, for instance
                done.left_out.append(
                    f"Run {name} was not stored: it has something that the store cannot hold ({error})."
                )
        return done

    def _states(self) -> dict[str, str]:
        """Return the state of every run. An invalid state counts as the earliest, so that the run is stored again."""
        return dict(self._database.execute("SELECT run, stamp FROM read_runs").fetchall())

    def _stored(self, run: HeldRun) -> bool:
        """Store a run, completely or not at all. Return whether it was stored: another process may have stored a later state."""
        found, _ = trials.read_all(run.folder)
        statements = index_rows.of_run(run.identity, run.folder, run.known)
        statements += index_rows.of_trials(run.identity, found)
        statements += index_rows.of_points(run.identity, points.points(run.folder, run.known, found), _state(run))
        with self._told(), self._database.transaction():
            self._lock(run.identity)
            row = self._database.execute("SELECT stamp FROM read_runs WHERE run = %s", [run.identity]).fetchone()
            stored, mine = _order(row[0]) if row else None, _order(_state(run))
            if stored and mine and stored >= mine:
                return False
            self._change(("DELETE FROM runs WHERE id = :run", [{"run": run.identity}]), *statements)
            for path in run.files:
                values = {"run": run.identity, "path": path, "content": (run.folder / path).read_bytes()}
                self._change((index_rows.insert("files", values), [values]))
        return True

    def _change(self, *statements: Statement) -> None:
        for text, rows in statements:
            with self._database.cursor() as cursor:
                cursor.executemany(re.sub(r":(\w+)", r"%(\1)s", text), [_clean(row) for row in rows])

    def history(self, say: Callable[[str], None] = notice) -> tuple[list[RunFacts], list[Point]]:
        """Return the facts and the points of all runs in the store.

        Anyone who can write to it may have altered rows. These are left out, and `say` gets a sentence for each run with one.
        """
        with self._told():
            known = self._database.execute(index_rows.RUNS).fetchall()
            found = self._database.execute(index_rows.POINTS).fetchall()
        names, damaged = {row[0]: row[1] for row in known}, dict[str, ValueError]()
        runs = _readable(known, index_rows.to_facts, damaged)
        present = {each.run for each in runs}
        lines = [each for each in _readable(found, index_rows.to_point, damaged) if each.run in present]
        for run, error in damaged.items():
            say(
                f"The store {self.shown} holds a damaged row of the run {names.get(run, run)} ({error}), which is left out. "
                f"To have it stored again, delete {run} from the table {NAMESPACE}.runs: the next run with --store on the "
                "machine with its folder stores it."
            )
        return runs, lines

    def fetch(self, known: dict[str, str], into: Path, left_out: list[str]) -> list[Path]:
        """Write the runs whose state is not in `known` (identity -> state) as folders of runs; returns these folders.

        Each has a folder of its own, because two may have the same name. Anyone who can write to the store may have altered rows:
        a run with one is left out, and `left_out` gets a sentence. UserError: the store went away, or nothing can be written.
        """
        made = []
        with self._told():
            states = self._states()
            runs = self._database.execute("SELECT id, name FROM runs ORDER BY id").fetchall()
        for run, name in runs:
            if run in states and known.get(run) != states[run]:
                try:
                    made.append(self._written(run, name, into))
                except _DamagedRun as error:
                    shutil.rmtree(into / run, ignore_errors=True)
                    left_out.append(f"The run {name!r} of the store {self.shown} was left out: {error}")
        return made

    def _written(self, run: str, name: str, into: Path) -> Path:
        """Write the files of a run, and return its folder. _DamagedRun: the rows of the run cannot be those of a run."""
        if not identity.is_identity(run):
            raise _DamagedRun(f"its identity is {run!r}.")
        if PurePosixPath(name).parts != (name,) or name == ".." or name.startswith(".") or "\0" in name:
            raise _DamagedRun("its name cannot be that of a folder.")
        folder = into / run / name
        query = "SELECT path, content FROM files WHERE run = %s ORDER BY path"
        with self._told(), closing(self._database.cursor()) as cursor:
            for path, content in cursor.stream(query, [run]):
                if not identity.is_of_record(path) or ".." in path.split("/"):
                    raise _DamagedRun(f"it holds a file {path!r}, which no run can have.")
                _write(folder / path, content)
        if not (folder / record.FILE).is_file():
            raise _DamagedRun(f"it has no {record.FILE}.")
        return folder


def states_of(runs: Path) -> dict[str, str]:
    """Return {identity: state} of the runs in a folder, in the form of the store; unreadable runs are left out."""
    found = {}
    for name in run_folders.names(runs):
        try:
            run = identity.held(runs / name)
            found[run.identity] = _state(run)
        except (UserError, OSError):
            continue
    return found


def _readable(
    rows: Iterable[tuple[Any, ...]], make: Callable[[tuple[Any, ...]], Made], damaged: dict[str, ValueError]
) -> list[Made]:
    """Return the converted rows, whose first column is the run; the first error of every run is added to `damaged`."""
    found = []
    for row in rows:
        try:
            found.append(make(row))
        except ValueError as error:
            damaged.setdefault(row[0], error)
    return found


def _state(run: HeldRun) -> str:
    """Return the state of a run as text: its progress, and the hash of its content."""
    return " ".join(map(str, (*run.progress, run.digest)))


def _write(target: Path, content: bytes) -> None:
    """Write a file of a run. _DamagedRun: its path is impossible, or conflicts with another file."""
    try:
        paths.make_private(target.parent)
        target.write_bytes(content)
    except OSError as error:
        if error.errno not in NAME_ERRORS:
            raise UserError(f"{error.filename or target} cannot be written ({error.strerror}). Merge again.") from None
        shown = f"{target.name[:80]}..." if len(target.name) > 80 else target.name
        raise _DamagedRun(f"the file {shown!r} cannot be written ({error.strerror}).") from None
    except ValueError as error:  # a path that this system cannot write as bytes
        raise _DamagedRun(f"the file {target.name!r} cannot be written ({error}).") from None


def _order(state: str) -> tuple[int, int, str] | None:
    """Return a key that sorts states like `HeldRun.is_later_than`; None for a text that is no state."""
    found = re.fullmatch(r"([0-9]{1,18}) ([0-9]{1,18}) ([0-9a-f]{64})", state)
    return (int(found[1]), int(found[2]), found[3]) if found else None


def _clean(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without NUL, which PostgreSQL's texts cannot hold but a worker's message may contain."""
    replaced = "\N{REPLACEMENT CHARACTER}"
    return {name: each.replace("\0", replaced) if isinstance(each, str) else each for name, each in row.items()}
