"""`steelyard merge FOLDER...`: the runs of several machines or people in one folder."""

import argparse
import os
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from steelyard.cli.commands import selection
from steelyard.errors import notice
from steelyard.results import addresses, merging, shared
from steelyard.results.merging import Merged
from steelyard.results.shared import Shared


def execute(arguments: argparse.Namespace) -> int:
    """Merge the runs and report the result for each; the exit code is 1 if one was left out."""
    target = selection.runs_of(arguments)
    done = _merged(arguments.sources, target)
    if arguments.json:
        selection.print_json(asdict(done))
    else:
        _show(done, target)
    return 1 if done.left_out else 0


def _merged(sources: list[str], target: Path) -> Merged:
    stores = [each for each in sources if addresses.is_meant(each) or ("@" in each and not os.path.exists(each))]  # noqa: PTH110
    for each in stores:
        addresses.check(each)
    folders = [Path(each).expanduser().absolute() for each in sources if each not in stores]
    if not stores:
        return merging.merge(folders, target)
    merging.make(target)
    with TemporaryDirectory(prefix=".merge-", dir=target) as name:
        left_out: list[str] = []
        for number, each in enumerate(stores):
            with Shared(each) as store:
                folders += store.fetch(shared.states_of(target), Path(name, str(number)), left_out)
        done = merging.merge(folders, target)
    return replace(done, left_out=[*left_out, *done.left_out])


def _show(done: Merged, target: Path) -> None:
    for old, new in done.renamed.items():
        print(f"Renamed {old} to {new}, because another run has the same name.")
    for sentence in done.left_out:
        notice(sentence)
    print(
        f"{target}: {_runs(done.added)} added, {len(done.replaced)} brought up to date, {len(done.unchanged)} there already."
    )


def _runs(names: list[str]) -> str:
    return "1 run" if len(names) == 1 else f"{len(names)} runs"
