"""The arguments of all commands, as tables. Only the standard library is imported here, so that `--help` is fast."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from steelyard.cli import values
from steelyard.cli.descriptions import ABOUT, COMMANDS, DESCRIPTIONS
from steelyard.exports.formats import FORMATS, listed

# The names of an argument, and its other parameters for argparse.
Argument = tuple[list[str], dict[str, Any]]


def _value(names: str, metavar: str | None, text: str, **more: Any) -> Argument:
    return names.split(), {"metavar": metavar, "help": text, **more}


def _several(names: str, metavar: str, text: str, **more: Any) -> Argument:
    return _value(names, metavar, text, action="append", **more)


def _flag(name: str, text: str, action: str = "store_true", **more: Any) -> Argument:
    return [name], {"action": action, "help": text, **more}


# An argument whose name is that of a field of `Options` becomes that option; without a value, the option has its default.
QUANTITIES = (
    "step time (default), throughput, first step, time to first step, peak memory, energy, largest batch; cost, with --price; "
    "of an inference latency p50, p95, p99; of whole epochs total time, epoch, first epoch, second epoch, evaluation time; "
    "memory of import, build, first step, warm-up, counted steps, evaluation"
)
PRICE = _value(
    "--price",
    "AMOUNT/h",
    "show what steps, samples, epochs and trainings cost at this price of the machine, such as 1.2/h, 1.20EUR/h or '$1.2/h' (a "
    "shell needs the quotes), or of energy, such as 0.30/kWh, which needs a meter; it is in no record",
    type=values.price,
)
HIDE = _several(
    "--hide", "WORD", "hide this word as well, such as the name of another machine; may be repeated", default=[]
)
SIGN_OF_LIFE = "where there is none for 30 s, one says that the command goes on"
RUNS = _value("--runs", "DIR", "folder that holds the runs")
PLAIN = _flag("--plain", f"print plain lines instead of the live view; {SIGN_OF_LIFE}")
WAIT = [
    _value(
        "--wait",
        "MINUTES",
        "wait no longer than this for other commands on this machine (default: until it is free)",
        type=values.wait_minutes,
        dest="wait_minutes",
    ),
    _flag("--no-wait", "end at once with one sentence if another command uses this machine"),
]
FRAMEWORKS = _several(
    "--frameworks", "DIR", "folder with frameworks of your own", type=values.folder, dest="framework_folders"
)
INTERPRETERS = _several(
    "--env",
    "NAME=PYTHON",
    "use your own Python interpreter, in which the framework is installed; may be repeated",
    type=values.interpreter,
    dest="external",
)
FOLDERS = [
    _several("--workloads", "DIR", "folder with workloads of your own", type=values.folder, dest="workload_folders"),
    FRAMEWORKS,
]
# The title of arguments of commands that run the processes of an earlier run.
ALLOWING = "to allow what the record of a run from somebody else would execute"
SELECTION = [
    _value("study", "STUDY", "a predefined comparison (default first-look), or a .toml file of your own", nargs="?"),
    _value(
        "--size", "NAME", "size of the study: P as published, C for two cores, Q quick (default: the largest that fits)"
    ),
    _several(
        "-w --workload",
        "NAME[:PRESET]",
        "network, and its size; may be repeated (default: the study's)",
        dest="workloads",
    ),
    _several(
        "-f --framework",
        "NAME[@VERSION]",
        "framework to compare; may be repeated (default: the study's)",
        dest="frameworks",
    ),
    _several("--mode", "FRAMEWORK=MODE[,MODE]", "execution modes of a framework; may be repeated", dest="modes"),
    _several(
        "--knob",
        "[FRAMEWORK.]KNOB=VALUE[,VALUE]",
        "a setting that changes the speed but not the results; may be repeated",
        dest="knobs",
    ),
    _several(
        "--accumulate",
        "N[,N]",
        "compute a step's batch in N parts, one after the other, and add their gradients (the knob accumulate)",
        type=values.parts,
        dest="knobs",
    ),
    INTERPRETERS,
    _several(
        "--set", "SIZE=VALUE[,VALUE]", "another value of a size that the preset names; may be repeated", dest="set"
    ),
    _value(
        "--task",
        "NAME[,NAME]",
        "train (training, default), or compute the forward pass only (inference)",
        type=values.texts,
        dest="tasks",
    ),
    _value(
        "--optimizer",
        "NAME[,NAME]",
        "another optimizer of the workload (default: the preset's)",
        type=values.texts,
        dest="optimizers",
    ),
    _value(
        "--optimizer-implementation",
        None,
        "the framework's own optimizer (native, default), or the canonical formula written out (reference)",
        choices=("native", "reference"),
    ),
    _several(
        "--strategy",
        "NAME:PARTS[@WHERE]",
        "spread the training over devices or processes, such as processes:2, or "
        "single:1 to compare with; @1gbit puts ranks on two hosts with such a link, @2nodes on nodes of a cluster; may be "
        "repeated; see steelyard list strategies",
        dest="strategies",
    ),
    _value("--device", "NAME", "cpu (default), cuda or ascend"),
    _value("--precision", "NAME[,NAME]", "float32 (default) or float64", type=values.texts, dest="precisions"),
    _value(
        "--threads",
        "N[,N]",
        "threads per framework, or 'default' for each framework's own default (default: one per core)",
        type=values.threads,
    ),
    _flag("--deterministic", "use only deterministic algorithms"),
    _value(
        "--batch",
        "N[,N]",
        "samples per step or forward pass (default: the preset's)",
        type=values.batches,
        dest="batches",
    ),
    _flag("--synthetic", "use random batches even if the preset has a data set"),
    _value(
        "--data", "DIR", "folder with data sets in their official layouts; see steelyard list data", type=values.folder
    ),
    _value(
        "--weights",
        "[FRAMEWORK:]FILE",
        "a file of trained weights to begin with: .npz or .safetensors by the names of network.py, or a checkpoint of a "
        "framework (.pt, .pth, .bin, .index, .ckpt, .params; default: weights are drawn by the seed)",
        type=values.weights,
    ),
    *FOLDERS,
    _value(
        "--train-limit",
        "N[,N]",
        "training samples of the data set that are used (default: all)",
        type=values.samples,
        dest="train_limits",
    ),
    _value(
        "--memory-limit",
        "SIZE[,SIZE]",
        "main memory that each measuring process may use, such as 4GB (default: no limit)",
        type=values.texts,
        dest="memory_limits",
    ),
    _value(
        "--seed", "N[,N]", "seeds for weights, data order and round order (default 1)", type=values.seeds, dest="seeds"
    ),
]
MEASURING = [
    _value(
        "--protocol",
        "NAME",
        "sequential, fixed:10+200, second-epoch, epochs:20, total:20 or another (default: the study's, usually sequential)",
    ),
    _value(
        "--threshold",
        "VALUE[,VALUE]",
        "values of the test metric: show when trainings of whole epochs reach them",
        type=values.thresholds,
        dest="thresholds",
    ),
    _value("--rounds", "N or LOW-HIGH", "number of rounds: processes per framework (default: the protocol's)"),
    _value(
        "--minutes",
        "N",
        "start no new round after this time; 0 means no limit (default: the study's limit)",
        type=values.minutes,
    ),
    _value(
        "--profiles",
        "N",
        "after the rounds, profile N processes of each contender: where does its time go? (default: the study's)",
        type=values.profiles,
    ),
    _value(
        "--delta",
        "SHARE",
        "treat smaller relative differences as equal (default 0.02, which is 2 %%)",
        type=values.delta,
    ),
    _value(
        "--loader-workers",
        "N[,N]",
        "processes of each framework's own data loader (default 0)",
        type=values.loader_workers,
    ),
    _flag("--fresh", "measure every cell of a study anew, even if an earlier run has measured it in the same way"),
    _flag(
        "--no-certify",
        "measure without certificates; results are marked and get no verdict",
        "store_false",
        dest="certify",
    ),
    _flag("--no-guard", "do not repeat rounds during which the machine was disturbed", "store_false", dest="guard"),
    _value(
        "--silence",
        "SECONDS",
        "stop a worker that writes no event for this long (default 600)",
        type=values.silence,
        dest="silence_s",
    ),
]

# Command -> {title of a group in the help text, or "": its arguments}.
GROUPS: dict[str, dict[str, list[Argument]]] = {
    "run": {
        "what to compare": SELECTION,
        "how to measure": MEASURING,
        "what to do": [
            _flag("--dry-run", "only check what can be checked, and print the plan with a time estimate"),
            _flag(
                "--if-changed",
                "measure only if a version, a file, the machine or the method of measuring has changed since the "
                "last complete run of the same plan here; for nightly jobs",
            ),
            _value(
                "--on",
                "PLACE",
                "where to measure: local (default), ray (the Ray cluster on this machine or in RAY_ADDRESS), or "
                "ray://HOST:PORT; see steelyard nodes",
                type=values.place,
                default="local",
            ),
            _value(
                "--nodes",
                "fingerprint=HEX",
                "which nodes of a cluster measure (default: the kind that most nodes are of)",
                type=values.fingerprint,
            ),
            _value(
                "--resume",
                "RUN",
                "continue an interrupted run: its name, or 'latest', the last one with a finished process",
            ),
            *WAIT,
            RUNS,
            _value(
                "--store",
                "URL",
                "afterwards, bring this shared store up to date with the folder of runs: postgresql://HOST/DATABASE",
            ),
            _flag("--json", "print the result as JSON"),
            PLAIN,
        ],
    },
    "certify": {
        "what to compare": SELECTION,
        "": [
            _flag("--all", "certify the small presets of every workload"),
            _flag(
                "--full",
                "certify the published presets: one step of a small synthetic batch, 131,072 elements of each large "
                "tensor; slow",
            ),
            _flag("--fresh", "ignore stored certificates and references"),
            *WAIT,
            RUNS,
            _value(
                "--silence",
                "SECONDS",
                "stop a worker that writes no event for this long (default 600, with --full 3600)",
                type=values.silence,
                dest="silence_s",
            ),
            _flag("--json", "print the certificates as JSON"),
            PLAIN,
        ],
    },
    "nodes": {
        "": [
            _value(
                "--on",
                "PLACE",
                "local: this machine alone; ray: the cluster on this machine or in RAY_ADDRESS; ray://HOST:PORT "
                "(default ray)",
                type=values.place,
                default="ray",
            ),
            _flag("--json", "print the nodes as JSON"),
        ]
    },
    "slurm-script": {
        "": [
            _value("study", "ARGUMENT", "what to measure: the arguments of `steelyard run`, after `--`", nargs="*"),
            _value("--nodes", "N", "nodes to ask for (default 2)", type=values.node_count, default=2),
            _value("--minutes", "N", "time to ask for (default 60)", type=values.minutes, default=60.0),
            _value(
                "--runs",
                "DIR",
                "folder for the record, on a disk that all nodes share (default steelyard-runs)",
                default="steelyard-runs",
            ),
            _flag("--json", "print the script and what it asks for as JSON"),
        ]
    },
    "report": {
        "": [
            _value("run", None, "name of a run (default: the latest)", nargs="?", default="latest"),
            _value(
                "--quantity",
                "NAME",
                f"what to rank by; other quantities than step time get a page of their own: {QUANTITIES}",
                default="step time",
            ),
            PRICE,
            RUNS,
            _flag("--json", "print the result as JSON"),
            _value("--output", "FILE", "write the page to this file instead of the run's folder", type=values.page),
        ]
    },
    "export": {
        "": [
            _value("run", None, "name or folder of a run (default: the latest)", nargs="?", default="latest"),
            _value("--format", "NAME", f"the format: {listed(FORMATS)}", choices=tuple(FORMATS), required=True),
            _value("-o --output", "PATH", "write to this file or folder; texts are printed without it"),
            _value("--quantity", "NAME", f"what verdict tables and plots rank by: {QUANTITIES}", default="step time"),
            PRICE,
            RUNS,
            _flag("--json", "print the paths of the files as JSON"),
        ]
    },
    "bundle": {
        "": [
            _value("run", None, "name or folder of a run (default: the latest)", nargs="?", default="latest"),
            _value(
                "-o --output",
                "FOLDER",
                "write to this folder, which must not exist (default: RUN-bundle in the current folder)",
            ),
            HIDE,
            RUNS,
            _flag("--json", "print the folder and its files as JSON"),
        ]
    },
    "gallery": {
        "": [
            _value("sources", "FOLDER", "a folder with runs or bundles in it, or the folder of one run", nargs="+"),
            _value(
                "-o --output",
                "SITE",
                "write to this folder: a new or empty one, or that of an earlier gallery (default: FOLDER-gallery in the "
                "current folder)",
            ),
            HIDE,
            _flag("--json", "print what was written as JSON"),
        ]
    },
    "cite": {
        "": [
            _value("run", None, "name or folder of a run (default: the latest)", nargs="?", default="latest"),
            RUNS,
            _flag("--json", "print the fields of the entry as JSON"),
        ]
    },
    "advise": {
        "": [
            _several(
                "--for",
                "GOAL[=WEIGHT]",
                "what matters to you, and how much (default 1); may be repeated",
                type=values.goal,
                dest="goals",
            ),
            _value("--steps", "N", "steps of a short job (default 100)", type=values.steps, default=0),
            _value("--epochs", "N", "the same as a number of epochs", type=values.epochs, default=0),
            _value(
                "--threshold",
                "VALUE[,VALUE]",
                "values of the test metric that a training must reach (default: those of the run)",
                type=values.thresholds,
                dest="thresholds",
                default=(),
            ),
            PRICE,
            _flag("--any", "choose among retired frameworks, too (default: only those that are still maintained)"),
            _value("--run", None, "the run to choose from (default: the latest)", default="latest"),
            RUNS,
            _flag("--json", "print the answers as JSON"),
        ],
        "to search settings": [
            _value("--tune", "NAME[@VERSION]", "search the settings of this framework, as in the run"),
            _value("-w --workload", "NAME", "for which group or workload of the run, if it has several"),
            _several(
                "--mode",
                "MODE[,MODE]",
                "modes to try (default: all, and the knobs that matter to the network)",
                dest="modes",
            ),
            _several("--knob", "KNOB=VALUE[,VALUE]", "a knob and its values to try; may be repeated", dest="knobs"),
            _value(
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
            _value("results", "RESULT", "results of the run, by framework or in full (default: all)", nargs="*"),
            _value("--run", None, "the run to explain (default: the latest)", default="latest"),
            RUNS,
            _value(
                "--profiles",
                "N",
                "profile N processes of each contender; values of several have intervals (default: the run's, at least 1)",
                type=values.taken_profiles,
            ),
            _flag("--fresh", "take profiles again that exist already"),
            *WAIT,
            _flag("--json", "print the breakdowns as JSON"),
            PLAIN,
        ],
        ALLOWING: [*FOLDERS, INTERPRETERS],
    },
    "compare": {
        "": [
            _value("a", "A", "a result of a run, or a run"),
            _value("b", "B", "the result or the run to compare it with"),
            _value("more", "RUN", "further runs, to be shown side by side", nargs="*"),
            _value("--quantity", "NAME", f"what to compare: {QUANTITIES}", default="step time"),
            _flag("--anyway", "show two runs even if they are not comparable; there is no verdict where they differ"),
            _value("--run", None, "the run that holds both results (default: the latest)", default="latest"),
            RUNS,
            _flag("--json", "print the comparison as JSON"),
            _value("--output", "FILE", "of runs side by side: write a page to this file as well", type=values.page),
        ]
    },
    "list": {
        "": [
            _value(
                "what",
                None,
                "what to list",
                choices=("frameworks", "workloads", "presets", "studies", "strategies", "data", "runs"),
            ),
            _value(
                "name",
                "NAME",
                "with data: a data set, to show which files are read from a folder named with --data; with "
                "presets: a workload, to show the sizes that --set takes",
                nargs="?",
                default="",
            ),
            *FOLDERS,
            RUNS,
            _flag("--json", "print the list as JSON"),
        ]
    },
    "new": {
        "": [
            _value("what", None, "what to create", choices=("workload",)),
            _value("name", "NAME", "name of the workload: letters, digits, '.', '_' and '-'"),
            *FOLDERS,
            _value("--into", "DIR", "parent folder (default: the current folder)", default="."),
            _value(
                "--like",
                "WORKLOAD",
                "copy this workload (of steelyard, of --workloads, or an example: gpt, vit) instead of "
                "the small one of two layers",
                default="",
            ),
            _several(
                "-f --framework",
                "NAME",
                "framework to write an implementation for; may be repeated (default: the two that are "
                "preferred as float64 references)",
                dest="frameworks",
            ),
            _flag("--json", "print the folder and the next commands as JSON"),
        ]
    },
    "port": {
        "": [
            _value("action", None, "what to do", choices=("new", "check", "show")),
            _value(
                "folder",
                "FOLDER",
                "the folder of the port; with show: of the record of a check",
            ),
            _several(
                "-f --framework",
                "NAME",
                "with new: the framework of a side; name two",
                dest="frameworks",
            ),
            _value(
                "--silence",
                "SECONDS",
                "with check: how long a side may take for one answer (default: 600)",
                type=values.silence,
                dest="silence_s",
                default=600.0,
            ),
            _value(
                "--output",
                "DIR",
                "with check: the folder of its record (default: a new one beside the runs)",
                default="",
            ),
            _flag("--json", "print the verdict and everything that was compared as JSON"),
            PLAIN,
        ]
    },
    "env": {
        "": [
            _value("action", None, "what to do", choices=("create", "list", "remove")),
            _value("names", "NAME[@VERSION]", "frameworks (create: default all; remove: 'all' for all)", nargs="*"),
            _value("--device", "NAME", "cpu (default), cuda or ascend", default="cpu"),
            _flag("--json", "print the list as JSON"),
            PLAIN,
        ]
    },
    "history": {
        "": [
            _value("study", "STUDY", "the name of a study (default: all)", nargs="?", default=""),
            _value(
                "--fail-if-slower",
                "SHARE",
                "end with exit code 1 if a contender became slower by more, such as 5%%",
                type=values.share,
            ),
            _value("--since", "DAY", "leave out the runs before this day, such as 2026-11-01", type=values.day),
            _value(
                "--accept",
                "DAY",
                "take the level of this day as normal: nothing is compared with a level before it",
                type=values.accepted_day,
            ),
            RUNS,
            _value("--store", "URL", "read a shared store instead of the folder of runs: postgresql://HOST/DATABASE"),
            _flag("--json", "print the lines and their changes as JSON; no page is written"),
            _value("--output", "FILE", "write the page to this file instead of the folder of runs", type=values.page),
        ]
    },
    "merge": {
        "": [
            _value(
                "sources",
                "FOLDER",
                "a folder of runs, the folder of one run, or a shared store: postgresql://HOST/DATABASE",
                nargs="+",
            ),
            _value("--runs", "DIR", "folder of runs to merge into (default: the usual one)"),
            _flag("--json", "print what became of the runs as JSON"),
        ]
    },
    "runs": {
        "": [
            _value("action", None, "what to do", choices=("list", "remove")),
            _value("names", "RUN", "names of the runs to remove, in full", nargs="*"),
            RUNS,
            _flag("--json", "print the list as JSON"),
        ]
    },
    "cache": {
        "": [
            _value(
                "action",
                None,
                "what to do: list (default) or prune",
                nargs="?",
                choices=("list", "prune"),
                default="list",
            ),
            RUNS,
            _flag("--json", "print the list as JSON"),
        ]
    },
    "doctor": {
        "": [
            _value("--adapter", "NAME", "check the adapter of this framework instead of the machine"),
            _value(
                "-w --workload",
                "NAME[:PRESET]",
                "check the adapter on this workload; by default on the smallest that it implements",
                dest="workload",
            ),
            *FOLDERS,
            _several("--env", "NAME=PYTHON", "interpreter of the framework", type=values.interpreter, dest="external"),
            _flag("--json", "print the findings as JSON"),
        ]
    },
}


def parser(argv: list[str], kind: "type[_Parser] | None" = None) -> argparse.ArgumentParser:
    """Return the parser. Only commands named in `argv` get their arguments, because building all of them is slow."""
    layout: Any = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
    _Parser.words = argv
    top = (kind or _Parser)(prog="steelyard", description=ABOUT, **layout)
    top.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, groups in GROUPS.items():
        command = commands.add_parser(name, help=COMMANDS[name], description=DESCRIPTIONS[name], **layout)
        command.set_defaults(module=name.replace("-", "_"))
        for title, arguments in groups.items() if name in argv else ():
            group = command.add_argument_group(title) if title else command
            for names, more in arguments:
                group.add_argument(*names, **more)
    return top


def typed(field: str) -> str:
    """Return the argument of `steelyard run` that sets a field of `Options`."""
    arguments = [*SELECTION, *MEASURING]
    return next(names[-1] for names, more in arguments if more.get("dest", names[-1][2:].replace("-", "_")) == field)


class _Parser(argparse.ArgumentParser):
    """A parser that hides addresses of stores in its messages, as they may contain a password. `words`: the typed arguments."""

    words: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        from steelyard.results.addresses import hidden_in

        super().error(hidden_in(message, self.words))


class _Asked(_Parser):
    """A parser for programs: an error is raised, not printed."""

    def error(self, message: str) -> NoReturn:
        from steelyard.errors import UserError

        raise UserError(f"{message[:1].upper()}{message[1:].removesuffix('.')}.")


def read(command: str, options: Mapping[str, Any]) -> tuple[list[str], argparse.Namespace]:
    """Return the arguments that a program gives to `run` or `certify`, as text and as the command line would read them.

    `options`: {field of `Options`: its value}; a single value stands for a list of one. UserError: there is no such option, or it
    cannot have this value.
    """
    from steelyard.errors import UserError, nearest

    known = _by_field(command)
    argv = [command]
    for name, value in options.items():
        if name not in known:
            raise UserError(f"{command}() has no option '{name}'.{nearest(name, list(known))}")
        argv += _words(known[name], value)
    return argv, parser(argv, _Asked).parse_args(argv)


def _by_field(command: str) -> dict[str, Argument]:
    """Return the arguments of a command by the field that they set; a further one for the same field by its own name."""
    known: dict[str, Argument] = {}
    for argument in (argument for group in GROUPS[command].values() for argument in group):
        names, more = argument
        own = names[-1].removeprefix("--").replace("-", "_")
        field = str(more.get("dest", own))
        known[own if field in known else field] = argument
    return known


def _words(argument: Argument, value: Any) -> list[str]:
    """Return an argument with its value as the words of a command line; none where the value is the default."""
    (*_, name), more = argument
    action = more.get("action", "store")
    if action in ("store_true", "store_false"):
        return [name] if value is (action == "store_true") else []
    if isinstance(value, Mapping):
        value = [f"{key}={each}" for key, each in value.items()]
    values = [str(each) for each in (value if isinstance(value, list | tuple) else [value])]
    if not name.startswith("-"):
        return values
    return [word for each in values for word in (name, each)] if action == "append" else [name, ",".join(values)]


class _Version(argparse.Action):
    """Print the version; it is imported only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from steelyard.version import VERSION

        print(f"steelyard {VERSION}")
        parser.exit()
