"""Profile the contenders of a measured run, each in processes of its own that are in no verdict."""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.catalog import frameworks
from steelyard.catalog.frameworks import Framework
from steelyard.environments import Failure, setup
from steelyard.errors import UserError
from steelyard.files import settings_files, within
from steelyard.measure import jobs, launch
from steelyard.measure.session import SPARE_BYTES, Session
from steelyard.plan.run_plan import Variant
from steelyard.profiles import classes, recorded
from steelyard.results import record
from steelyard.results.trials import Trial
from steelyard.statistics.orders import round_order
from steelyard_worker.protocol import PROFILE

DECIDING = ("version", "python_version", "packages", "contents")
"""The facts of an environment that decide what runs in it."""
SPREAD = "Of trainings over several parts, only those are profiled whose ranks are processes with a share of every batch each."


@dataclass(frozen=True)
class Missing:
    """A profile that is to be taken, one of several of a variant."""

    variant: Variant
    number: int
    folder: Path


def missing(
    folder: Path, wanted: Iterable[Variant], seed: int, processes: int = 1, fresh: bool = False
) -> list[Missing]:
    """Return the profiles of a run's variants that do not exist, all of them with `fresh`, interleaved as in rounds."""
    by_key = {variant.key: variant for variant in wanted}
    found = (
        Missing(by_key[key], number, recorded.folder_of(folder, by_key[key].file_name, number))
        for number in range(1, processes + 1)
        for key in round_order(by_key, number, seed)
    )
    return [each for each in found if fresh or not (each.folder / recorded.RULES).exists()]


def take(session: Session, profiles: Iterable[Missing], processes: int = 1) -> None:
    """Take profiles, `processes` of each variant. The reason of a failure is stored, and the profile is tried again next time.
    ResumableError: the disk has no room for another profile.
    """
    for each in profiles:
        session.check_disk("explain --run")
        key = each.variant.key
        session.screen.say(f"profiling {key}" + (f", {each.number} of {processes}" if processes > 1 else ""))
        with _replacing(session.folder, each.folder) as earlier:
            trial = _profile(session, each.variant, each.number, each.folder)
        if trial.error:
            kept = " The earlier profile was kept." if earlier else ""
            session.screen.say(f"{key} could not be profiled: {trial.error[1]}{kept}")


@contextmanager
def _replacing(run: Path, folder: Path) -> Iterator[bool]:
    """Empty the folder of a profile, and restore the earlier profile if no new one was made; yields whether there was one."""
    within.check(run, folder)
    held, aside = (folder / recorded.RULES).exists(), folder.with_name(f"{folder.name}.earlier")
    within.remove(run, aside if held else folder)
    if held:
        folder.rename(aside)
    try:
        yield held
    finally:
        if held and not (folder / recorded.RULES).exists():
            within.remove(run, folder)
            aside.rename(folder)
        within.remove(run, aside)


def _profile(session: Session, variant: Variant, number: int, folder: Path) -> Trial:
    job = jobs.profiling(session.plan, variant, session.inputs_of(variant.case), number, folder)
    try:
        known = frameworks.framework(variant.case.framework)
        spread = known.spread(variant.case.strategy)
        if spread and not (spread.several_processes and spread.shares == "batch"):
            raise UserError(SPREAD)
        rules = _rules(known)
        _check_environment(session, variant.case.environment)
    except UserError as error:
        return launch.refused(job, "unsupported", str(error))
    trial = session.run(job)
    if not trial.error:
        recorded.write_rules(folder, rules)
        return trial
    # A profiler that cannot write its trace may fail in any way.
    full = trial.error[0] == "disk-full" or shutil.disk_usage(folder).free < SPARE_BYTES
    return _without_trace(trial) if full else trial


def _rules(known: Framework) -> dict[str, Any]:
    """Return a framework's table of operations; UserError: there is none, or it cannot be used."""
    path = known.folder / frameworks.OPERATIONS
    if not path.is_file():
        raise UserError(f"{known.title} cannot be profiled: it has no table of operations ({path.name}).")
    found = settings_files.read(path)
    if "operations" not in found:
        raise UserError(f"{path} has no [[operations]].")
    try:
        for key in ("operations", "stack"):
            classes.table(found.get(key, ()))
        classes.unrecorded(found.get("unrecorded", {}))
    except (LookupError, TypeError, ValueError) as error:
        raise UserError(f"{path} cannot be used: {error}.") from None
    return found


def _check_environment(session: Session, name: str) -> None:
    """Check that the environment of this name is the one that was measured; UserError: it is not, or cannot be made."""
    now = session.environments.results()[name]
    then: Mapping[str, Any] = record.read(session.folder).environments.get(name) or {}
    if isinstance(now, Failure):
        raise UserError(now.sentence)
    facts = setup.facts(now)
    if any(then.get(key, facts[key]) != facts[key] for key in DECIDING):
        raise UserError(
            f"The packages of {name} have changed since the run, so a profile would not explain it. Measure again."
        )


def _without_trace(trial: Trial) -> Trial:
    """Remove what a profiler wrote until the disk was full, and record that as the reason."""
    shutil.rmtree(trial.folder / PROFILE, ignore_errors=True)
    free = shutil.disk_usage(trial.folder).free / 2**20
    reason = f"Its trace does not fit into the {free:.0f} MiB that are free on the disk that holds {trial.folder}."
    return launch.record_error(trial, "disk-full", reason)
