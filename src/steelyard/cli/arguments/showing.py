"""The arguments of the commands that show what a run measured."""

from steelyard.cli import values
from steelyard.cli.arguments.kinds import Argument, flag, several, value
from steelyard.cli.arguments.shared import ALLOWING, FOLDERS, HIDE, INTERPRETERS, PLAIN, PRICE, QUANTITIES, RUNS, WAIT
from steelyard.exports.formats import FORMATS, listed

GROUPS: dict[str, dict[str, list[Argument]]] = {
    "report": {
        "": [
            value("run", None, "name of a run (default: the latest)", nargs="?", default="latest"),
            value(
                "--quantity",
                "NAME",
                f"what to rank by; other quantities than step time get a page of their own: {QUANTITIES}",
                default="step time",
            ),
            PRICE,
            RUNS,
            flag("--json", "print the result as JSON"),
            value("--output", "FILE", "write the page to this file instead of the run's folder", type=values.page),
        ]
    },
    "export": {
        "": [
            value("run", None, "name or folder of a run (default: the latest)", nargs="?", default="latest"),
            value("--format", "NAME", f"the format: {listed(FORMATS)}", choices=tuple(FORMATS), required=True),
            value("-o --output", "PATH", "write to this file or folder; texts are printed without it"),
            value("--quantity", "NAME", f"what verdict tables and plots rank by: {QUANTITIES}", default="step time"),
            PRICE,
            RUNS,
            flag("--json", "print the paths of the files as JSON"),
        ]
    },
    "bundle": {
        "": [
            value("run", None, "name or folder of a run (default: the latest)", nargs="?", default="latest"),
            value(
                "-o --output",
                "FOLDER",
                "write to this folder, which must not exist (default: RUN-bundle in the current folder)",
            ),
            HIDE,
            RUNS,
            flag("--json", "print the folder and its files as JSON"),
        ]
    },
    "gallery": {
        "": [
            value("sources", "FOLDER", "a folder with runs or bundles in it, or the folder of one run", nargs="+"),
            value(
                "-o --output",
                "SITE",
                "write to this folder: a new or empty one, or that of an earlier gallery (default: FOLDER-gallery in the "
                "current folder)",
            ),
            HIDE,
            flag("--json", "print what was written as JSON"),
        ]
    },
    "cite": {
        "": [
            value("run", None, "name or folder of a run (default: the latest)", nargs="?", default="latest"),
            RUNS,
            flag("--json", "print the fields of the entry as JSON"),
        ]
    },
    "advise": {
        "": [
            several(
                "--for",
                "GOAL[=WEIGHT]",
                "what matters to you, and how much (default 1); may be repeated",
                type=values.goal,
                dest="goals",
            ),
            value("--steps", "N", "steps of a short job (default 100)", type=values.steps, default=0),
            value("--epochs", "N", "the same as a number of epochs", type=values.epochs, default=0),
            value(
                "--threshold",
                "VALUE[,VALUE]",
                "values of the test metric that a training must reach (default: those of the run)",
                type=values.thresholds,
                dest="thresholds",
                default=(),
            ),
            PRICE,
            flag("--any", "choose among retired frameworks, too (default: only those that are still maintained)"),
            value("--run", None, "the run to choose from (default: the latest)", default="latest"),
            RUNS,
            flag("--json", "print the answers as JSON"),
        ],
        "to search settings": [
            value("--tune", "NAME[@VERSION]", "search the settings of this framework, as in the run"),
            value("-w --workload", "NAME", "for which group or workload of the run, if it has several"),
            several(
                "--mode",
                "MODE[,MODE]",
                "modes to try (default: all, and the knobs that matter to the network)",
                dest="modes",
            ),
            several("--knob", "KNOB=VALUE[,VALUE]", "a knob and its values to try; may be repeated", dest="knobs"),
            value(
                "--minutes",
                "N",
                "time limit of search and rounds (default 15); certificates come on top",
                type=values.minutes,
            ),
            *WAIT,
            PLAIN,
        ],
        f"with --tune, {ALLOWING}": [*FOLDERS, INTERPRETERS],
    },
    "explain": {
        "": [
            value("results", "RESULT", "results of the run, by framework or in full (default: all)", nargs="*"),
            value("--run", None, "the run to explain (default: the latest)", default="latest"),
            RUNS,
            value(
                "--profiles",
                "N",
                "profile N processes of each contender; values of several have intervals (default: the run's, at least 1)",
                type=values.taken_profiles,
            ),
            flag("--fresh", "take profiles again that exist already"),
            *WAIT,
            flag("--json", "print the breakdowns as JSON"),
            PLAIN,
        ],
        ALLOWING: [*FOLDERS, INTERPRETERS],
    },
    "compare": {
        "": [
            value("a", "A", "a result of a run, or a run"),
            value("b", "B", "the result or the run to compare it with"),
            value("more", "RUN", "further runs, to be shown side by side", nargs="*"),
            value("--quantity", "NAME", f"what to compare: {QUANTITIES}", default="step time"),
            flag("--anyway", "show two runs even if they are not comparable; there is no verdict where they differ"),
            value("--run", None, "the run that holds both results (default: the latest)", default="latest"),
            RUNS,
            flag("--json", "print the comparison as JSON"),
            value("--output", "FILE", "of runs side by side: write a page to this file as well", type=values.page),
        ]
    },
}
