"""Count the operations of training steps' graphs, each in a process of its own that measures nothing."""

from pathlib import Path
from typing import Any

from steelyard.catalog import frameworks
from steelyard.errors import UserError
from steelyard.files import settings_files, within
from steelyard.measure import jobs, launch
from steelyard.measure.session import Session
from steelyard.plan.run_plan import Variant
from steelyard.profiles import graphs, recorded

SPREAD = "The graph of a training over several ranks is not counted."


def count(session: Session) -> None:
    """Count the graph of every variant that the plan names and that has no counts yet. The reason of a failure is stored."""
    for variant in session.plan.counted:
        if not _is_known(session, variant):
            session.screen.say(f"counting the graph of {variant.key}")
            _count(session, variant)


def _is_known(session: Session, variant: Variant) -> bool:
    try:
        return bool(graphs.read(session.folder, variant.file_name))
    except UserError:
        return False


def _count(session: Session, variant: Variant) -> None:
    folder = graphs.folder_of(session.folder, variant.file_name)
    within.remove(session.folder, folder)
    job = jobs.counting(session.plan, variant, session.inputs_of(variant.case), folder)
    known = frameworks.framework(variant.case.framework)
    is_spread = known.spread(variant.case.strategy) is not None
    trial = launch.refused(job, "unsupported", SPREAD) if is_spread else session.run(job)
    recorded.write_rules(folder, {"operations": _rules(known.folder)})
    if trial.error:
        session.screen.say(f"The graph of {variant.key} was not counted: {trial.error[1]}")


def _rules(framework: Path) -> list[Any]:
    """Return the rules that say which operation of a framework belongs to which class; none where it has no such file."""
    files = [framework / name for name in (frameworks.GRAPHS, frameworks.OPERATIONS)]
    return [rule for file in files if file.is_file() for rule in settings_files.read(file)["operations"]]
