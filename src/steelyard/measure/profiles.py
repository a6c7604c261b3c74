"""Profile the contenders of a measured run, each in a process of its own that is in no verdict."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from steelyard.catalog import frameworks
from steelyard.files import settings_files
from steelyard.measure import jobs, launch
from steelyard.measure.session import Session
from steelyard.plan.run_plan import Variant
from steelyard.profiles import recorded
from steelyard.results.trials import Trial


def take(session: Session, wanted: Iterable[Variant], fresh: bool = False) -> None:
    """Profile every wanted variant that has no profile yet; one that failed is tried again. A failure keeps its reason."""
    for variant in wanted:
        folder = recorded.folder_of(session.folder, variant.file_name)
        if fresh or not (folder / recorded.RULES).exists():
            shutil.rmtree(folder, ignore_errors=True)
            session.screen.say(f"profiling {variant.key}")
            trial = _profile(session, variant, folder)
            if trial.error:
                session.screen.say(f"{variant.key} could not be profiled: {trial.error[1]}")


def _profile(session: Session, variant: Variant, folder: Path) -> Trial:
    job = jobs.profiling(session.plan, variant, session.inputs_of(variant.case), folder)
    rules = frameworks.framework(variant.case.framework).folder / frameworks.OPERATIONS
    if not rules.is_file():
        return launch.refused(job, "unsupported", f"{variant.case.framework} has no {frameworks.OPERATIONS}")
    trial = session.run_aside(job)
    if not trial.error:
        recorded.write_rules(folder, settings_files.read(rules))
    return trial
