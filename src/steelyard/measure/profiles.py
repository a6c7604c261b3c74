"""Profile the contenders of a measured run, each in a process of its own that is in no verdict."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from steelyard.catalog import frameworks
from steelyard.files import settings_files
from steelyard.measure import jobs
from steelyard.measure.session import Session
from steelyard.plan.run_plan import Variant
from steelyard.profiles import recorded
from steelyard.results.trials import Trial


def take(session: Session, wanted: Iterable[Variant], fresh: bool = False) -> list[Trial]:
    """Profile every wanted variant that has no profile yet; returns the trials, failed ones as well."""
    found = []
    for variant in wanted:
        folder = recorded.folder_of(session.folder, variant.file_name)
        rules = _rules(variant)
        if fresh:
            shutil.rmtree(folder, ignore_errors=True)
        if rules is None or _is_there(folder):
            continue
        session.screen.say(f"profiling {variant.key}")
        job = jobs.profiling(session.plan, variant, session.inputs_of(variant.case), folder)
        found.append(session.run_aside(job))
        recorded.write_rules(folder, settings_files.read(rules))
    return found


def _rules(variant: Variant) -> Path | None:
    """Return the framework's table of operations; None if it has none."""
    path = frameworks.framework(variant.case.framework).folder / frameworks.OPERATIONS
    return path if path.is_file() else None


def _is_there(folder: Path) -> bool:
    return (folder / recorded.RULES).exists()
