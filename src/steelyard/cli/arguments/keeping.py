"""The arguments of the commands that work on what is kept: many runs, environments and the cache."""

from steelyard.cli import values
from steelyard.cli.arguments.kinds import Argument, flag, value
from steelyard.cli.arguments.shared import PLAIN, RUNS

GROUPS: dict[str, dict[str, list[Argument]]] = {
    "history": {
        "": [
            value("study", "STUDY", "the name of a study (default: all)", nargs="?", default=""),
            value(
                "--fail-if-slower",
                "SHARE",
                "end with exit code 1 if a contender became slower by more, such as 5%%",
                type=values.share,
            ),
            value("--since", "DAY", "leave out the runs before this day, such as 2026-11-01", type=values.day),
            value(
                "--accept",
                "DAY",
                "take the level of this day as normal: nothing is compared with a level before it",
                type=values.accepted_day,
            ),
            RUNS,
            value("--store", "URL", "read a shared store instead of the folder of runs: postgresql://HOST/DATABASE"),
            flag("--json", "print the lines and their changes as JSON; no page is written"),
            value("--output", "FILE", "write the page to this file instead of the folder of runs", type=values.page),
        ]
    },
    "merge": {
        "": [
            value(
                "sources",
                "FOLDER",
                "a folder of runs, the folder of one run, or a shared store: postgresql://HOST/DATABASE",
                nargs="+",
            ),
            value("--runs", "DIR", "folder of runs to merge into (default: the usual one)"),
            flag("--json", "print what became of the runs as JSON"),
        ]
    },
    "runs": {
        "": [
            value("action", None, "what to do", choices=("list", "remove")),
            value("names", "RUN", "names of the runs to remove, in full", nargs="*"),
            RUNS,
            flag("--json", "print the list as JSON"),
        ]
    },
    "env": {
        "": [
            value("action", None, "what to do", choices=("create", "list", "remove")),
            value("names", "NAME[@VERSION]", "frameworks (create: default all; remove: 'all' for all)", nargs="*"),
            value("--device", "NAME", "cpu (default), cuda or ascend", default="cpu"),
            flag("--json", "print the list as JSON"),
            PLAIN,
        ]
    },
    "cache": {
        "": [
            value(
                "action",
                None,
                "what to do: list (default) or prune",
                nargs="?",
                choices=("list", "prune"),
                default="list",
            ),
            RUNS,
            flag("--json", "print the list as JSON"),
        ]
    },
}
