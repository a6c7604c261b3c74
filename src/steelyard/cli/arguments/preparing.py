"""The arguments of the commands that come before a run: lists, workloads and models of your own, the machine."""

from steelyard.cli import values
from steelyard.cli.arguments.kinds import Argument, flag, several, value
from steelyard.cli.arguments.shared import FOLDERS, PLAIN, RUNS

GROUPS: dict[str, dict[str, list[Argument]]] = {
    "list": {
        "": [
            value(
                "what",
                None,
                "what to list",
                choices=("frameworks", "workloads", "presets", "studies", "strategies", "data", "runs"),
            ),
            value(
                "name",
                "NAME",
                "with data: a data set, to show which files are read from a folder named with --data; with "
                "presets: a workload, to show the sizes that --set takes",
                nargs="?",
                default="",
            ),
            *FOLDERS,
            RUNS,
            flag("--json", "print the list as JSON"),
        ]
    },
    "new": {
        "": [
            value("what", None, "what to create", choices=("workload",)),
            value("name", "NAME", "name of the workload: letters, digits, '.', '_' and '-'"),
            *FOLDERS,
            value("--into", "DIR", "parent folder (default: the current folder)", default="."),
            value(
                "--like",
                "WORKLOAD",
                "copy this workload (of steelyard, of --workloads, or an example: gpt, vit) instead of "
                "the small one of two layers",
                default="",
            ),
            several(
                "-f --framework",
                "NAME",
                "framework to write an implementation for; may be repeated (default: the two that are "
                "preferred as float64 references)",
                dest="frameworks",
            ),
            flag("--json", "print the folder and the next commands as JSON"),
        ]
    },
    "port": {
        "": [
            value("action", None, "what to do", choices=("new", "check", "show")),
            value(
                "folder",
                "FOLDER",
                "the folder of the port; with show: of the record of a check",
            ),
            several(
                "-f --framework",
                "NAME",
                "with new: the framework of a side; name two",
                dest="frameworks",
            ),
            value(
                "--silence",
                "SECONDS",
                "with check: how long a side may take for one answer (default: 600)",
                type=values.silence,
                dest="silence_s",
                default=600.0,
            ),
            value(
                "--output",
                "DIR",
                "with check: the folder of its record (default: a new one beside the runs)",
                default="",
            ),
            flag("--json", "print the verdict and everything that was compared as JSON"),
            PLAIN,
        ]
    },
    "doctor": {
        "": [
            value("--adapter", "NAME", "check the adapter of this framework instead of the machine"),
            value(
                "-w --workload",
                "NAME[:PRESET]",
                "check the adapter on this workload; by default on the smallest that it implements",
                dest="workload",
            ),
            *FOLDERS,
            several("--env", "NAME=PYTHON", "interpreter of the framework", type=values.interpreter, dest="external"),
            flag("--json", "print the findings as JSON"),
        ]
    },
}
