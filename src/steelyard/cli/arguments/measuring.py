"""The arguments of the commands that measure or certify, and of those that show and ask for nodes."""

from steelyard.cli import values
from steelyard.cli.arguments.kinds import Argument, flag, value
from steelyard.cli.arguments.selecting import MEASURING, SELECTION
from steelyard.cli.arguments.shared import PLAIN, RUNS, WAIT

GROUPS: dict[str, dict[str, list[Argument]]] = {
    "run": {
        "what to compare": SELECTION,
        "how to measure": MEASURING,
        "what to do": [
            value(
                "--port", "FOLDER", "check both models of a port (see steelyard port), and time them instead of a study"
            ),
            flag("--dry-run", "only check what can be checked, and print the plan with a time estimate"),
            flag(
                "--if-changed",
                "measure only if a version, a file, the machine or the method of measuring has changed since the "
                "last complete run of the same plan here; for nightly jobs",
            ),
            value(
                "--on",
                "PLACE",
                "where to measure: local (default), ray (the Ray cluster on this machine or in RAY_ADDRESS), or "
                "ray://HOST:PORT; see steelyard nodes",
                type=values.place,
                default="local",
            ),
            value(
                "--nodes",
                "fingerprint=HEX",
                "which nodes of a cluster measure (default: the kind that most nodes are of)",
                type=values.fingerprint,
            ),
            value(
                "--resume",
                "RUN",
                "continue an interrupted run: its name, or 'latest', the last one with a finished process",
            ),
            *WAIT,
            RUNS,
            value(
                "--store",
                "URL",
                "afterwards, bring this shared store up to date with the folder of runs: postgresql://HOST/DATABASE",
            ),
            flag("--json", "print the result as JSON"),
            PLAIN,
        ],
    },
    "certify": {
        "what to compare": SELECTION,
        "": [
            flag("--all", "certify the small presets of every workload"),
            flag(
                "--full",
                "certify the published presets: one step of a small synthetic batch, 131,072 elements of each large "
                "tensor; slow",
            ),
            flag("--fresh", "ignore stored certificates and references"),
            *WAIT,
            RUNS,
            value(
                "--silence",
                "SECONDS",
                "stop a worker that writes no event for this long (default 600, with --full 3600)",
                type=values.silence,
                dest="silence_s",
            ),
            flag("--json", "print the certificates as JSON"),
            PLAIN,
        ],
    },
    "nodes": {
        "": [
            value(
                "--on",
                "PLACE",
                "local: this machine alone; ray: the cluster on this machine or in RAY_ADDRESS; ray://HOST:PORT "
                "(default ray)",
                type=values.place,
                default="ray",
            ),
            flag("--json", "print the nodes as JSON"),
        ]
    },
    "slurm-script": {
        "": [
            value("study", "ARGUMENT", "what to measure: the arguments of `steelyard run`, after `--`", nargs="*"),
            value("--nodes", "N", "nodes to ask for (default 2)", type=values.node_count, default=2),
            value("--minutes", "N", "time to ask for (default 60)", type=values.minutes, default=60.0),
            value(
                "--runs",
                "DIR",
                "folder for the record, on a disk that all nodes share (default steelyard-runs)",
                default="steelyard-runs",
            ),
            flag("--json", "print the script and what it asks for as JSON"),
        ]
    },
}
