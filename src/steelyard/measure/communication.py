"""Measure an exchange by itself, after the rounds: each strategy in a group of ranks of its own, which is in no verdict."""

from collections.abc import Collection

from steelyard.catalog import frameworks, strategies
from steelyard.errors import UserError
from steelyard.files import within
from steelyard.measure import jobs
from steelyard.measure.session import Session
from steelyard.plan.run_plan import Variant
from steelyard.results import communication
from steelyard.results.round_results import RoundResults
from steelyard_worker.strategy import nodes_of


def missing(session: Session, results: RoundResults) -> tuple[str, ...]:
    """Return the ids of the measured cases whose exchange was not measured yet."""
    measured = results.finished.keys() - results.failed.keys()
    return tuple(
        variant.case.id
        for variant in session.plan.variants
        if variant.case.id in measured
        and _exchanges(variant)
        and not _is_known(session, variant)
        # Every node measures an exchange on its own, without the other nodes.
        and nodes_of(variant.case.strategy) == 1
    )


def measure(session: Session, cases: Collection[str]) -> None:
    """Measure the exchange of these cases, by id. The reason of a failure is stored."""
    for variant in (session.plan.by_id[each] for each in cases):
        session.screen.say(f"measuring the exchange of {variant.key}")
        _measure(session, variant)


def _exchanges(variant: Variant) -> bool:
    return strategies.exchanges(frameworks.framework(variant.case.framework).spread(variant.case.strategy))


def _is_known(session: Session, variant: Variant) -> bool:
    try:
        return communication.read(session.folder, variant.file_name) is not None
    except UserError:
        return False


def _measure(session: Session, variant: Variant) -> None:
    folder = communication.folder_of(session.folder, variant.file_name)
    within.remove(session.folder, folder)
    trial = session.run(jobs.communicating(session.plan, variant, session.inputs_of(variant.case), folder))
    if trial.error:
        session.screen.say(f"The exchange of {variant.key} was not measured: {trial.error[1]}")
