"""One run from request to page: every station, in order."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from steelyard import report
from steelyard.certificates import certification
from steelyard.environments import setup
from steelyard.errors import UserError
from steelyard.inputs import group_inputs
from steelyard.measure import noise_floor as calibration
from steelyard.measure import peak as physics
from steelyard.measure import rounds
from steelyard.measure.session import Session
from steelyard.plan import memory
from steelyard.plan import resolve as plan
from steelyard.results import record
from steelyard.results.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.certificates.method import Scope
    from steelyard.console import Screen
    from steelyard.plan.options import Options


def run(options: Options, folder: Path, screen: Screen) -> Path:
    """Do everything that is still missing in a run folder; returns the page.

    An interrupted run keeps all finished processes; the same call on the same folder goes on with the rest.
    """
    with record.claim(folder):
        with _working(folder):
            session = _measure(options, folder, screen)
        screen.stage("Report")
        return report.write(report.view(folder, session.store))


def certify(
    options: Options, folder: Path, screen: Screen, fresh: bool = False, scope: Scope | None = None
) -> dict[str, dict[str, Any]]:
    """Certify only: returns the certificates by cell."""
    with record.claim(folder), _working(folder):
        return certification.certify(_prepare(options, folder, screen), fresh, scope)


@contextmanager
def _working(folder: Path) -> Iterator[None]:
    """Keep the state of a run folder true to what happens."""
    record.update(folder, state="running")
    try:
        yield
    except BaseException:
        with suppress(UserError):  # a full disk must not hide the sentence that says so
            record.update(folder, state="interrupted")
        raise
    record.update(folder, state="complete")


def _measure(options: Options, folder: Path, screen: Screen) -> Session:
    session = _prepare(options, folder, screen)
    certification.certify(session)
    noise = calibration.noise_floor(session)
    screen.stage("Rounds")
    book = rounds.read_book(session.store.trials(folder.name))
    rounds.measure(session, noise, book)
    physics.check(session, book)
    return session


def _prepare(options: Options, folder: Path, screen: Screen) -> Session:
    wanted = plan.plan(options)
    memory.check(wanted)
    store = Store(folder.parent)
    environments, wanted = setup.environments(wanted, screen)
    screen.stage("Data and weights")
    shared = group_inputs.prepare(wanted, lambda p: screen.progress(p.sentence, p.done, p.total))
    setup.note(folder, wanted, environments, shared)
    store.add_run(folder)
    return Session(wanted, folder, environments, shared, store, screen)
