"""Certify networks from a program, for tests of one's own implementations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from steelyard.cli import keywords
from steelyard.cli.commands import selection
from steelyard.errors import UserError


class Certificates(Mapping[str, dict[str, Any]]):
    """The certificates of cases, by their names: group, environment and settings."""

    def __init__(self, found: dict[str, dict[str, Any]]) -> None:
        self._found = found

    def __getitem__(self, name: str) -> dict[str, Any]:
        """Return a certificate: `passed`, `sentence`, and the figures behind it."""
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the cases."""
        return iter(self._found)

    def __len__(self) -> int:
        """Return the number of cases."""
        return len(self._found)

    @property
    def passed(self) -> bool:
        """Whether every case was certified, and there is at least one."""
        return bool(self._found) and all(each.get("passed") for each in self._found.values())

    def require(self) -> None:
        """Do nothing if every case was certified. NotCertified: names each case that was not, with the reason."""
        wrong = [f"{name}: {each['sentence']}" for name, each in self._found.items() if not each.get("passed")]
        if wrong or not self._found:
            raise NotCertified("\n".join(wrong) or "Nothing was certified.")

    def __repr__(self) -> str:
        """Return a line for each case."""
        marks = {True: "certified", False: "REJECTED"}
        return "\n".join(
            f"{marks[bool(each.get('passed'))]}  {name}  {each['sentence']}" for name, each in self._found.items()
        )


class NotCertified(UserError):
    """An implementation does not compute what the reference does."""


def certify(
    study: str = "", *, runs: str | Path | None = None, wait_minutes: float | None = None, **options: Any
) -> Certificates:
    """Certify without timing, and return the certificates.

    `options`: as of `run`. A folder among `workloads` stands for all presets of the workloads in it. UserError: an option does
    not exist or cannot have this value, or nothing can be certified.
    """
    from steelyard import feasibility, stages
    from steelyard.results import record

    given = {"study": study} if study else {}
    argv, asked = keywords.read("certify", given | _with_folders(options))
    asked.plain, asked.runs = False, str(runs) if runs else None
    plan, _ = feasibility.planned(selection.options_of(asked))
    selection.check_cache()
    limit_s = math.inf if wait_minutes is None else 60 * wait_minutes
    with (
        selection.begun(plan, selection.runs_of(asked), f"{plan.study.name}-certificates", argv) as folder,
        closing(selection.screen_of(asked)) as screen,
    ):
        by_id = stages.certify(plan, folder, screen, limit_s=limit_s)
    names = record.read(folder).plan.by_id
    return Certificates({names[case_id].key: certificate for case_id, certificate in by_id.items()})


def _with_folders(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with every folder among `workloads` in place of the workloads in it."""
    from steelyard.catalog import workloads

    asked = options.get("workloads", ())
    named = [str(each) for each in (asked if isinstance(asked, list | tuple) else [asked])]
    folders = [name for name in named if Path(name).is_dir()]
    if not folders:
        return options
    given = options.get("workload_folders", ())
    more = [*(given if isinstance(given, list | tuple) else [given]), *folders]
    known = workloads.find(tuple(str(Path(folder).absolute()) for folder in more))
    inside = [
        f"{name}:{preset}"
        for name, workload in known.items()
        if any(Path(workload.folder).resolve().is_relative_to(Path(folder).resolve()) for folder in folders)
        for preset in workload.presets
    ]
    return {**options, "workload_folders": more, "workloads": [*(set(named) - set(folders)), *inside]}
