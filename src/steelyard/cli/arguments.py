"""The argument parsers of all commands. Only the standard library is imported here, so that `--help` is fast."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from steelyard.cli.main import ABOUT, COMMANDS

if TYPE_CHECKING:
    from collections.abc import Callable

FALLBACK_COLUMNS = 80

RUN_ABOUT = """\
Compare frameworks on this machine. The command creates one isolated environment per framework, prepares the data,
certifies that every framework computes the same function, and measures rounds of new processes until every pair of
frameworks is decided. It prints a table of verdicts and writes one self-contained HTML page. The last line printed
is the path of that page.

Press Ctrl-C to stop: the results of finished processes are stored, and --resume continues from there.

examples:
  steelyard run                                                  the study first-look, all frameworks
  steelyard run --workload resnet18:cifar10 --data ~/data        one network at its published size
  steelyard run -f pytorch -f jax                                only these two
  steelyard run -f pytorch --mode pytorch=eager,compiled         two modes of one framework
  steelyard run -f tensorflow -f tensorflow@2.20.0               two versions of one framework
  steelyard run -f pytorch --env pytorch=/opt/venv/bin/python    an interpreter of your own
  steelyard run --protocol fixed:10+200                          10 warm-up steps, 200 counted, as published
  steelyard run --resume latest                                  continue an interrupted run
"""


CERTIFY_ABOUT = """\
Prove that implementations compute the same function; nothing is timed. Outputs, loss, every gradient and every
tensor after five optimizer steps are compared with a float64 reference on which two frameworks agree. If they differ,
the first tensor that differs is named. A certificate is stored and reused until the code, the versions or the
settings behind it change. The exit code is 1 if a case is rejected."""

NEW_ABOUT = """\
Create a folder with a workload of your own: spec.toml, the description of the network, and one file per framework.
The generated files describe a small working network: certify it first, then replace it step by step. Use
`--workloads DIR` with the other commands to make them find it.

example:
  steelyard new workload mine -f pytorch -f jax"""

REPORT_ABOUT = """\
Write the HTML page of a run again from its stored results and print its table of verdicts. Nothing is measured."""

COMPARE_ABOUT = """\
Compare two results of one run, or two runs with each other. A result is named as in the table of the run: by its
framework, or in full where the framework alone is not unique.

examples:
  steelyard compare pytorch jax                     two frameworks in the latest run
  steelyard compare pytorch/eager pytorch/compiled  two modes in the latest run
  steelyard compare 20260101-1200 20260301-0900     two runs: before and after"""

LIST_ABOUT = "List frameworks with their modes and knobs, workloads, presets, studies, data sets, or runs."

ENV_ABOUT = """\
Manage the isolated environments, one per framework and version. A run creates the environments it needs; use this
command to create them in advance, to list them, or to remove them and free their disk space."""

DOCTOR_ABOUT = (
    "Check this machine: can environments be created, is the machine quiet enough for measurements, and what is missing for\n"
    "which mode? With --adapter NAME: check that a framework's adapter keeps its contract, on the smallest workload that it\n"
    "implements. The exit code is 1 if something is wrong."
)


def parser(argv: list[str]) -> argparse.ArgumentParser:
    """Return the parser. Only commands named in `argv` get their arguments, because building all of them is slow."""
    top = argparse.ArgumentParser(prog="steelyard", description=ABOUT, formatter_class=_Help, allow_abbrev=False)
    top.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (about, add_arguments) in DETAILS.items():
        command = commands.add_parser(
            name, help=COMMANDS[name], description=about, formatter_class=_Help, allow_abbrev=False
        )
        command.set_defaults(module=name)
        if name in argv:
            add_arguments(command)
    return top


def _run(run: argparse.ArgumentParser) -> None:
    _selection(run)
    how = run.add_argument_group("how to measure")
    how.add_argument(
        "--protocol",
        default="",
        metavar="NAME",
        help="sequential, fixed:10+200, second-epoch or epochs:20-first (default: the study's, usually sequential)",
    )
    how.add_argument(
        "--rounds", metavar="N or LOW-HIGH", help="number of rounds: processes per framework (default: the protocol's)"
    )
    how.add_argument(
        "--minutes",
        type=float,
        metavar="N",
        help="start no new round after this time; 0 means no limit (default: the study's limit)",
    )
    how.add_argument(
        "--delta",
        type=float,
        default=0.02,
        metavar="SHARE",
        help="treat smaller relative differences as equal (default 0.02, which is 2 %%)",
    )
    how.add_argument(
        "--loader-workers",
        type=int,
        default=0,
        metavar="N",
        help="processes of each framework's own data loader (default 0)",
    )
    how.add_argument(
        "--no-certify",
        action="store_true",
        help="measure without certificates; results are marked and get no verdict",
    )
    how.add_argument(
        "--no-calibrate", action="store_true", help="do not measure this machine's noise floor; use an assumed value"
    )
    how.add_argument(
        "--no-guard", action="store_true", help="do not repeat rounds during which the machine was disturbed"
    )
    how.add_argument(
        "--silence",
        type=float,
        default=600,
        metavar="SECONDS",
        help="stop a worker that writes no event for this long (default 600)",
    )
    what = run.add_argument_group("what to do")
    what.add_argument("--dry-run", action="store_true", help="only print the plan and a time estimate")
    what.add_argument("--resume", metavar="RUN", help="continue an interrupted run: its name, or 'latest'")
    what.add_argument("--runs", metavar="DIR", help="folder that holds the runs")
    what.add_argument("--json", action="store_true", help="print the result as JSON")
    what.add_argument("--plain", action="store_true", help="print plain lines instead of the live view")


def _certify(certify: argparse.ArgumentParser) -> None:
    _selection(certify)
    certify.add_argument("--all", action="store_true", help="certify the small presets of every workload")
    certify.add_argument(
        "--full",
        action="store_true",
        help="certify the published presets: one step of a small synthetic batch, 131,072 elements of each large tensor; slow",
    )
    certify.add_argument("--fresh", action="store_true", help="ignore stored certificates")
    certify.add_argument("--runs", metavar="DIR", help="folder that holds the runs")
    certify.add_argument(
        "--silence",
        type=float,
        metavar="SECONDS",
        help="stop a worker that writes no event for this long (default 600, with --full 3600)",
    )
    certify.add_argument("--json", action="store_true", help="print the certificates as JSON")
    certify.add_argument("--plain", action="store_true", help="print plain lines instead of the live view")


def _selection(command: argparse.ArgumentParser) -> None:
    chosen = command.add_argument_group("what to compare")
    chosen.add_argument(
        "--study",
        default="first-look",
        metavar="NAME",
        help="a predefined comparison (default first-look), or a .toml file of your own",
    )
    chosen.add_argument(
        "-w",
        "--workload",
        action="append",
        default=[],
        metavar="NAME[:PRESET]",
        help="network, and its size; may be repeated (default: the study's)",
    )
    chosen.add_argument(
        "-f",
        "--framework",
        action="append",
        default=[],
        metavar="NAME[@VERSION]",
        help="framework to compare; may be repeated (default: the study's)",
    )
    chosen.add_argument(
        "--mode",
        action="append",
        default=[],
        metavar="FRAMEWORK=MODE[,MODE]",
        help="execution modes of a framework; may be repeated",
    )
    chosen.add_argument(
        "--knob",
        action="append",
        default=[],
        metavar="[FRAMEWORK.]KNOB=VALUE[,VALUE]",
        help="a setting that changes the speed but not the results; may be repeated",
    )
    chosen.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=PYTHON",
        help="use your own Python interpreter, in which the framework is installed; may be repeated",
    )
    chosen.add_argument(
        "--optimizer", default="", metavar="NAME", help="another optimizer of the workload (default: the preset's)"
    )
    chosen.add_argument(
        "--optimizer-implementation",
        choices=("native", "reference"),
        default="native",
        help="the framework's own optimizer (native, default), or the canonical formula written out (reference)",
    )
    chosen.add_argument("--device", default="cpu", metavar="NAME", help="cpu (default), cuda or ascend")
    chosen.add_argument("--precision", default="float32", metavar="NAME", help="float32 (default) or float64")
    chosen.add_argument(
        "--threads",
        metavar="N",
        help="threads per framework, or 'default' for each framework's own default (default: one per core)",
    )
    chosen.add_argument("--deterministic", action="store_true", help="use only deterministic algorithms")
    chosen.add_argument("--batch", type=int, metavar="N", help="samples per step (default: the preset's)")
    chosen.add_argument("--synthetic", action="store_true", help="use random batches even if the preset has a data set")
    chosen.add_argument(
        "--data", default="", metavar="DIR", help="folder that holds data sets in their official layouts"
    )
    _user_folders(chosen)
    chosen.add_argument(
        "--seed", type=int, default=1, metavar="N", help="seed for weights, data order and round order (default 1)"
    )


def _user_folders(command: argparse._ActionsContainer) -> None:
    command.add_argument(
        "--workloads", action="append", default=[], metavar="DIR", help="folder with workloads of your own"
    )
    _framework_folders(command)


def _framework_folders(command: argparse._ActionsContainer) -> None:
    command.add_argument(
        "--frameworks", action="append", default=[], metavar="DIR", help="folder with frameworks of your own"
    )


def _report(report: argparse.ArgumentParser) -> None:
    report.add_argument("run", nargs="?", default="latest", help="name of a run (default: the latest)")
    report.add_argument("--runs", metavar="DIR", help="folder that holds the runs")
    report.add_argument("--json", action="store_true", help="print the result as JSON")
    _quantity(report, "what to rank by; the page of another quantity than step time gets its own name")
    report.add_argument("--output", metavar="FILE", help="write the page to this file instead of the run's folder")


def _quantity(command: argparse.ArgumentParser, purpose: str) -> None:
    names = "step time (default), throughput, first step, time to first step or peak memory"
    command.add_argument("--quantity", default="step time", metavar="NAME", help=f"{purpose}: {names}")


def _compare(compare: argparse.ArgumentParser) -> None:
    compare.add_argument("a", metavar="A", help="a result of a run, or a run")
    compare.add_argument("b", metavar="B", help="the result or the run to compare it with")
    _quantity(compare, "what to compare")
    compare.add_argument(
        "--anyway",
        action="store_true",
        help="show two runs even if they are not comparable; there is no verdict where they differ",
    )
    compare.add_argument("--run", default="latest", help="the run that holds both results (default: the latest)")
    compare.add_argument("--runs", metavar="DIR", help="folder that holds the runs")
    compare.add_argument("--json", action="store_true", help="print the comparison as JSON")


def _list(listing: argparse.ArgumentParser) -> None:
    listing.add_argument(
        "what", choices=("frameworks", "workloads", "presets", "studies", "data", "runs"), help="what to list"
    )
    _user_folders(listing)
    listing.add_argument("--runs", metavar="DIR", help="folder that holds the runs")
    listing.add_argument("--json", action="store_true", help="print the list as JSON")


def _new(new: argparse.ArgumentParser) -> None:
    new.add_argument("what", choices=("workload",), help="what to create")
    new.add_argument("name", metavar="NAME", help="name of the workload: lower-case letters, digits and '-'")
    _framework_folders(new)
    new.add_argument("--into", default=".", metavar="DIR", help="parent folder (default: the current folder)")
    new.add_argument(
        "-f",
        "--framework",
        action="append",
        default=[],
        metavar="NAME",
        help="framework to write an implementation for; may be repeated "
        "(default: the two that are preferred as float64 references)",
    )


def _env(env: argparse.ArgumentParser) -> None:
    env.add_argument("action", choices=("create", "list", "remove"), help="what to do")
    env.add_argument(
        "names", nargs="*", metavar="NAME[@VERSION]", help="frameworks (create: default all; remove: 'all' for all)"
    )
    env.add_argument("--device", default="cpu", metavar="NAME", help="cpu (default), cuda or ascend")
    env.add_argument("--json", action="store_true", help="print the list as JSON")
    env.add_argument("--plain", action="store_true", help="print plain lines instead of progress bars")


def _doctor(doctor: argparse.ArgumentParser) -> None:
    doctor.add_argument("--adapter", metavar="NAME", help="check the adapter of this framework instead of the machine")
    _user_folders(doctor)
    doctor.add_argument(
        "--env", action="append", default=[], metavar="NAME=PYTHON", help="interpreter of the framework"
    )
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help text as wide as the terminal. argparse itself would import shutil and its compression libraries for this."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


def _columns() -> int:
    try:
        return int(os.environ.get("COLUMNS", "")) or FALLBACK_COLUMNS
    except ValueError:
        try:
            return os.get_terminal_size().columns or FALLBACK_COLUMNS
        except OSError:
            return FALLBACK_COLUMNS


class _Version(argparse.Action):
    """Print the version; it is imported only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from steelyard import __version__

        print(f"steelyard {__version__}")
        parser.exit()


# Command -> (description, function that adds its arguments).
DETAILS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "run": (RUN_ABOUT, _run),
    "certify": (CERTIFY_ABOUT, _certify),
    "report": (REPORT_ABOUT, _report),
    "compare": (COMPARE_ABOUT, _compare),
    "list": (LIST_ABOUT, _list),
    "new": (NEW_ABOUT, _new),
    "env": (ENV_ABOUT, _env),
    "doctor": (DOCTOR_ABOUT, _doctor),
}
