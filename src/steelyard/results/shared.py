"""A store that several machines share: a PostgreSQL database with the records of runs, their index and their points.

A run's folder remains what counts. The store is brought up to date from the folders whenever that is possible, so a server that
is away loses nothing.
"""

from __future__ import annotations

import re
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeVar

from steelyard.errors import UserError, notice
from steelyard.files import paths
from steelyard.results import identity, index_rows, points, run_folders, trials
from steelyard.results.index_rows import SCHEMA, SCHEMA_VERSION, Statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import psycopg

    from steelyard.results.identity import HeldRun
    from steelyard.results.points import Point, RunFacts

Made = TypeVar("Made")
NAMESPACE = "steelyard"
ABOUT = f"steelyard store, version {SCHEMA_VERSION}"
SCHEMES = ("postgresql://", "postgres://")
# A server that does not answer must not hold up a nightly job.
TIMES: dict[str, Any] = {"connect_timeout": 10, "tcp_user_timeout": 30_000, "options": "-c statement_timeout=300000"}
LATER = "The run folders hold everything: the store is brought up to date the next time."


@dataclass
class Pushed:
    """Names of runs that were stored, and a sentence for each that could not be."""

    stored: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def is_url(text: str) -> bool:
    """Report whether a text names a shared store, and not a folder."""
    return text.startswith(SCHEMES)


def without_password(text: str) -> str:
    """Return a text in which no address of a store has a user or a password, for records and messages."""
    plain = re.sub(r"(postgres(?:ql)?://)[^@/\s'\"]*@", r"\1", text)
    return re.sub(r"([?&]password=)[^&\s'\"]*", r"\1***", plain)


def check(url: str) -> None:
    """Raise UserError if the address is none, or the library that reads it is missing; nothing is connected."""
    if not is_url(url):
        raise UserError(
            f"--store must be an address such as postgresql://HOST/DATABASE, not '{without_password(url)}'."
        )
    try:
        import psycopg
    except ImportError:
        raise UserError("--store needs the package psycopg: pip install 'steelyard[postgres]'") from None
    try:
        psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error as error:
        raise UserError(f"--store {without_password(url)} is not an address ({_reason(error)}).") from None


class Shared:
    """A connection to a shared store, whose tables are made where they are missing. UserError: it cannot be used."""

    def __init__(self, url: str) -> None:
        check(url)
        import psycopg

        self.shown = without_password(url)
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
            raise UserError(f"The store {self.shown} cannot be used ({_reason(error)}). {LATER}") from None

    def _prepare(self) -> None:
        with self._database.transaction():
            self._lock(NAMESPACE)
            row = self._database.execute(
                "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s", [NAMESPACE]
            ).fetchone()
            if row and row[0] != ABOUT:
                held = f"'{row[0]}'" if row[0] else f"a schema {NAMESPACE} that something else has made"
                raise UserError(
                    f"The store {self.shown} holds {held}, and this version of steelyard writes '{ABOUT}'. Use the same "
                    "version on all machines, or another database."
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
        """Store every run of a folder that the store lacks, or has in an earlier state; runs in progress wait.

        UserError: the store went away; what was stored before stays.
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
                done.left_out.append(f"Run {name} was not stored: {error.filename} cannot be read ({error.strerror}).")
        return done

    def _states(self) -> dict[str, str]:
        return dict(self._database.execute("SELECT run, stamp FROM read_runs").fetchall())

    def _stored(self, run: HeldRun) -> bool:
        """Store a run, all or nothing; report whether it was: another process may have stored a later state meanwhile."""
        found, _ = trials.read_all(run.folder)
        statements = index_rows.of_run(run.identity, run.folder, run.known)
        statements += [each for trial in found for each in index_rows.of_trial(run.identity, trial)]
        statements += index_rows.of_points(run.identity, points.points(run.folder, run.known, found), _state(run))
        with self._told(), self._database.transaction():
            self._lock(run.identity)
            row = self._database.execute("SELECT stamp FROM read_runs WHERE run = %s", [run.identity]).fetchone()
            if row and _order(row[0]) >= _order(_state(run)):
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

    def fetch(self, known: dict[str, str], into: Path) -> list[Path]:
        """Write the runs whose state is not in `known` (identity -> state) as folders of runs; returns these folders.

        Each has a folder of its own, because two may have the same name. UserError: the store went away, or holds damaged paths.
        """
        made = []
        with self._told():
            states = self._states()
            for run, name in self._database.execute("SELECT id, name FROM runs ORDER BY id").fetchall():
                if run in states and known.get(run) != states[run]:
                    made.append(into / run / name)
                    self._write(run, name, made[-1])
        return made

    def _write(self, run: str, name: str, folder: Path) -> None:
        if not identity.is_identity(run) or name != folder.name or name.startswith("."):
            raise UserError(f"The store {self.shown} names a run '{name}', which cannot be a folder.")
        query = "SELECT path, content FROM files WHERE run = %s"
        with closing(self._database.cursor()) as cursor:
            for path, content in cursor.stream(query, [run]):
                if not identity.is_of_record(path) or ".." in path.split("/"):
                    raise UserError(f"The store {self.shown} holds a file '{path}', which no run can have.")
                target = folder / path
                paths.make_private(target.parent)
                target.write_bytes(content)


def states_of(runs: Path) -> dict[str, str]:
    """Return {identity: state} of the runs in a folder, as the store keeps them; those that cannot be read are left out."""
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
    """Return what is made of rows whose first column is the run; the first error of each run is added to `damaged`."""
    found = []
    for row in rows:
        try:
            found.append(make(row))
        except ValueError as error:
            damaged.setdefault(row[0], error)
    return found


def _state(run: HeldRun) -> str:
    """Return the state of a run as text: what its progress is, and the hash of everything in it."""
    return " ".join(map(str, (*run.progress, run.digest)))


def _order(state: str) -> tuple[int, int, str]:
    """Return what sorts states as `HeldRun.is_later_than` does."""
    count, size, digest = state.split(" ")
    return int(count), int(size), digest


def _clean(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without the one character that PostgreSQL's texts cannot hold: a worker's message may have any."""
    replaced = "\N{REPLACEMENT CHARACTER}"
    return {name: each.replace("\0", replaced) if isinstance(each, str) else each for name, each in row.items()}


def _reason(error: psycopg.Error) -> str:
    """Return the first line of an error without the address, which may hold a password."""
    lines = str(error).strip().splitlines()
    return without_password(lines[0].rstrip(".")) if lines else type(error).__name__
