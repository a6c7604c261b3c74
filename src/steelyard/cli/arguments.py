"""What may be written after `steelyard`: the parser of every command. Only the standard library is imported here."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from steelyard.cli.main import ABOUT, COMMANDS

if TYPE_CHECKING:
    from collections.abc import Callable

FALLBACK_COLUMNS = 80

RUN_ABOUT = """\
Measure a study: create one isolated environment per framework, prepare data, certify that every framework
computes the same function, measure interleaved rounds of fresh processes until every pair is decided, print a
verdict table and write one self-contained HTML page. The path of the page is the last line printed.

Ctrl-C stops cleanly: every finished process is kept, and --resume goes on with what is missing.

examples:
  steelyard run                                                  the study first-look, all frameworks
  steelyard run --workload resnet18:cifar10 --data ~/data        one network at its published size
  steelyard run -f pytorch -f jax                                only these two
  steelyard run -f pytorch --mode pytorch=eager,compiled         two modes of one framework
  steelyard run -f tensorflow -f tensorflow@2.20.0               two versions of one framework
  steelyard run -f pytorch --env pytorch=/opt/venv/bin/python    an interpreter of your own
  steelyard run --protocol fixed:10+200                          10 warm-up steps, 200 counted, as published
  steelyard run --resume latest                                  go on with an interrupted run
"""


CERTIFY_ABOUT = """\
Prove, without timing anything, that implementations compute the same function: outputs, loss, every gradient, and
every tensor after five optimizer steps, against a float64 reference on which two frameworks agree. The first tensor
that diverges is named. Certificates are kept and reused until anything that decides them changes."""

NEW_ABOUT = """\
Write a folder with a workload of your own: a spec, the network as data, and a file per framework. What is written
works as it is, so that it can be certified at once and replaced piece by piece. `--workloads DIR` makes every
command find it.

example:
  steelyard new workload mine -f pytorch -f jax"""

REPORT_ABOUT = """\
Write the page of a run again from its record, and print its verdict table. Nothing is measured."""

COMPARE_ABOUT = """\
Compare two contenders of one run, or two runs with each other.

examples:
  steelyard compare pytorch jax                     two frameworks in the latest run
  steelyard compare pytorch/eager pytorch/compiled  two modes in the latest run
  steelyard compare 20260101-1200 20260301-0900     every contender, before and after"""

LIST_ABOUT = "List what there is: frameworks with modes and knobs, workloads with presets, studies, data sets, or runs."

ENV_ABOUT = """\
Manage the isolated environments, one per framework and version. They are made when a run needs them, so this command
is for making them early, looking at them, and freeing their space."""

DOCTOR_ABOUT = (
    "Examine this machine: can environments be made, is it quiet enough to measure on, what is missing for which mode.\n"
    "With --adapter NAME: check that a framework's adapter keeps its contract, on the smallest workload it implements."
)


def parser(argv: list[str]) -> argparse.ArgumentParser:
    """Return the parser, with the arguments of those commands only that `argv` may name: the others' would be built in vain."""
    whole = argparse.ArgumentParser(prog="steelyard", description=ABOUT, formatter_class=_Help, allow_abbrev=False)
    whole.add_argument("--version", action=_Version, nargs=0, help="print the version and stop")
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (about, fill) in FILLED.items():
        command = commands.add_parser(
            name, help=COMMANDS[name], description=about, formatter_class=_Help, allow_abbrev=False
        )
        command.set_defaults(module=name)
        if name in argv:
            fill(command)
    return whole


def _run(run: argparse.ArgumentParser) -> None:
    _selection(run)
    how = run.add_argument_group("how to measure")
    how.add_argument(
        "--protocol",
        default="",
        metavar="NAME",
        help="sequential (default), fixed:10+200, second-epoch, epochs:20-first",
    )
    how.add_argument("--rounds", metavar="N or LOW-HIGH", help="processes per framework, instead of the protocol's own")
    how.add_argument(
        "--minutes",
        type=float,
        metavar="N",
        help="begin no round later than this, 0 for no limit (default: as the study says)",
    )
    how.add_argument(
        "--delta",
        type=float,
        default=0.02,
        metavar="SHARE",
        help="differences below this are practically none (default 0.02)",
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
        help="measure without proof; such numbers are marked and take part in no verdict",
    )
    how.add_argument(
        "--no-calibrate", action="store_true", help="do not measure this machine's noise floor first; assume one"
    )
    how.add_argument(
        "--no-guard", action="store_true", help="do not repeat rounds during which the machine was disturbed"
    )
    how.add_argument(
        "--silence",
        type=float,
        default=600,
        metavar="SECONDS",
        help="give up a worker that says nothing for so long (default 600)",
    )
    what = run.add_argument_group("what to do")
    what.add_argument("--dry-run", action="store_true", help="print the plan with a time estimate, and do nothing")
    what.add_argument("--resume", metavar="RUN", help="go on with an interrupted run: its name, or 'latest'")
    what.add_argument("--runs", metavar="DIR", help="where run folders are kept")
    what.add_argument("--json", action="store_true", help="print the result as JSON on standard output")
    what.add_argument("--plain", action="store_true", help="plain lines instead of the live view")


def _certify(certify: argparse.ArgumentParser) -> None:
    _selection(certify)
    certify.add_argument("--all", action="store_true", help="every workload in its small presets, in every framework")
    certify.add_argument(
        "--full",
        action="store_true",
        help="published sizes, one step of a small made-up batch, large tensors at 131,072 places each: slow",
    )
    certify.add_argument("--fresh", action="store_true", help="ignore certificates that are kept")
    certify.add_argument("--runs", metavar="DIR", help="where run folders are kept")
    certify.add_argument(
        "--silence",
        type=float,
        metavar="SECONDS",
        help="give up a worker that says nothing for so long (default 600, with --full 3600)",
    )
    certify.add_argument("--json", action="store_true", help="print the certificates as JSON")
    certify.add_argument("--plain", action="store_true", help="plain lines instead of the live view")


def _selection(command: argparse.ArgumentParser) -> None:
    chosen = command.add_argument_group("what to compare")
    chosen.add_argument(
        "--study",
        default="first-look",
        metavar="NAME",
        help="a named plan (default first-look), or a .toml file of your own",
    )
    chosen.add_argument(
        "-w",
        "--workload",
        action="append",
        default=[],
        metavar="NAME[:PRESET]",
        help="network and size; may be repeated",
    )
    chosen.add_argument(
        "-f", "--framework", action="append", default=[], metavar="NAME[@VERSION]", help="contender; may be repeated"
    )
    chosen.add_argument(
        "--mode", action="append", default=[], metavar="FRAMEWORK=MODE[,MODE]", help="execution mode(s) of a framework"
    )
    chosen.add_argument(
        "--knob",
        action="append",
        default=[],
        metavar="[FRAMEWORK.]KNOB=VALUE[,VALUE]",
        help="a setting that changes speed, not results",
    )
    chosen.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=PYTHON",
        help="an interpreter of your own that holds the framework",
    )
    chosen.add_argument("--optimizer", default="", metavar="NAME", help="another update rule of the workload")
    chosen.add_argument(
        "--optimizer-implementation",
        choices=("native", "reference"),
        default="native",
        help="the framework's own optimizer (default), or the canonical formula by hand",
    )
    chosen.add_argument("--device", default="cpu", metavar="NAME", help="cpu (default), cuda, ascend")
    chosen.add_argument("--precision", default="float32", metavar="NAME", help="float32 (default) or float64")
    chosen.add_argument(
        "--threads",
        metavar="N",
        help="threads per framework: a number, or 'default' (as each comes); without it one per core",
    )
    chosen.add_argument("--deterministic", action="store_true", help="only deterministic algorithms")
    chosen.add_argument("--batch", type=int, metavar="N", help="samples per step, instead of the preset's own")
    chosen.add_argument("--synthetic", action="store_true", help="made-up batches, where a preset names data")
    chosen.add_argument(
        "--data", default="", metavar="DIR", help="folder that holds data sets in their official layout"
    )
    _user_folders(chosen)
    chosen.add_argument(
        "--seed", type=int, default=1, metavar="N", help="seed of weights, data order and round order (default 1)"
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
    report.add_argument("--runs", metavar="DIR", help="where run folders are kept")
    report.add_argument("--json", action="store_true", help="print the result as JSON")
    report.add_argument("--output", metavar="FILE", help="write the page here instead of into the run's folder")


def _compare(compare: argparse.ArgumentParser) -> None:
    compare.add_argument("a", metavar="A")
    compare.add_argument("b", metavar="B")
    compare.add_argument(
        "--quantity",
        default="step time",
        metavar="NAME",
        help="what is compared: step time (default), throughput, first step, time to first step, peak memory",
    )
    compare.add_argument(
        "--anyway", action="store_true", help="show two runs that did not measure the same thing, without a verdict"
    )
    compare.add_argument("--run", default="latest", help="the run that holds both contenders (default: the latest)")
    compare.add_argument("--runs", metavar="DIR", help="where run folders are kept")
    compare.add_argument("--json", action="store_true", help="print the comparison as JSON")


def _list(listing: argparse.ArgumentParser) -> None:
    listing.add_argument("what", choices=("frameworks", "workloads", "presets", "studies", "data", "runs"))
    _user_folders(listing)
    listing.add_argument("--runs", metavar="DIR", help="where run folders are kept")
    listing.add_argument("--json", action="store_true", help="print the list as JSON")


def _new(new: argparse.ArgumentParser) -> None:
    new.add_argument("what", choices=("workload",))
    new.add_argument("name", metavar="NAME", help="small letters, digits and '-'")
    _framework_folders(new)
    new.add_argument("--into", default=".", metavar="DIR", help="where the folder goes (default: here)")
    new.add_argument(
        "-f",
        "--framework",
        action="append",
        default=[],
        metavar="NAME",
        help="framework with a file to fill in; may be repeated (default: two whose float64 can be the reference)",
    )


def _env(env: argparse.ArgumentParser) -> None:
    env.add_argument("action", choices=("create", "list", "remove"))
    env.add_argument("names", nargs="*", metavar="NAME[@VERSION]", help="frameworks; without any: all of them")
    env.add_argument("--device", default="cpu", metavar="NAME", help="cpu (default), cuda, ascend")
    env.add_argument("--json", action="store_true", help="print the list as JSON")
    env.add_argument("--plain", action="store_true", help="plain lines instead of progress bars")


def _doctor(doctor: argparse.ArgumentParser) -> None:
    doctor.add_argument("--adapter", metavar="NAME", help="check the adapter of this framework instead of the machine")
    _user_folders(doctor)
    doctor.add_argument(
        "--env", action="append", default=[], metavar="NAME=PYTHON", help="interpreter of the framework"
    )
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")


class _Help(argparse.RawDescriptionHelpFormatter):
    """As wide as the terminal; asking for that the usual way would import compression libraries."""

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
    """Print the version without importing anything for it unless asked."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from steelyard import __version__

        print(f"steelyard {__version__}")
        parser.exit()


# Command -> its help, and what adds its arguments.
FILLED: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "run": (RUN_ABOUT, _run),
    "certify": (CERTIFY_ABOUT, _certify),
    "report": (REPORT_ABOUT, _report),
    "compare": (COMPARE_ABOUT, _compare),
    "list": (LIST_ABOUT, _list),
    "new": (NEW_ABOUT, _new),
    "env": (ENV_ABOUT, _env),
    "doctor": (DOCTOR_ABOUT, _doctor),
}
