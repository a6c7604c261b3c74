"""argv -> a command. Only the standard library is imported here: `steelyard --help` must be immediate."""

from __future__ import annotations

import argparse
import errno
import importlib
import sys

EXIT_INTERRUPTED = 130
EXIT_PIPE = 141
# What a person can mend about a disk; any other operating system error is a fault of this program.
MENDABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST}

ABOUT = """\
steelyard weighs deep-learning frameworks against each other on this machine: the same network with the
same weights on the same batches in every framework, proved to be the same computation (a certificate),
timed in fresh processes and interleaved rounds, and judged with intervals.

Start with:   steelyard run            everything by default: about ten minutes the first time
              steelyard run --dry-run  what that would do, and how long it would take
              steelyard doctor         is this machine fit to measure on?
"""

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


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit code. A person's mistake ends in a sentence, never in a traceback."""
    arguments = _parser().parse_args(argv)
    from steelyard.errors import UserError

    _end_as_interrupted()
    try:
        module = importlib.import_module(f"steelyard.commands.{arguments.module}")
        code: int = module.execute(arguments)
        sys.stdout.flush()
        return code
    except UserError as error:
        print(f"steelyard: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("steelyard: stopped.", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return EXIT_PIPE
    except OSError as error:
        if error.errno not in MENDABLE:
            raise
        print(f"steelyard: {_of_disk(error)}", file=sys.stderr)
        return UserError.exit_code


def _end_as_interrupted() -> None:
    """Let a closed terminal and `kill` end a run as Ctrl-C does: cleanly, with what was measured."""
    import signal

    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def _of_disk(error: OSError) -> str:
    """Say what a file system refused, and where."""
    where = f"{error.filename}: " if error.filename else ""
    return (
        f"{where}{error.strerror}. What was finished is kept. Make room, or name folders that can be written with the "
        "variables STEELYARD_CACHE and STEELYARD_RUNS; an interrupted run goes on with: steelyard run --resume latest"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="steelyard", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and stop")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _run(commands)
    _certify(commands)
    _report(commands)
    _compare(commands)
    _list(commands)
    _env(commands)
    _doctor(commands)
    return parser


def _command(commands: argparse._SubParsersAction, name: str, help_: str, about: str) -> argparse.ArgumentParser:  # type: ignore[type-arg]
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=help_, description=about, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    command.set_defaults(module=name)
    return command


def _run(commands: argparse._SubParsersAction) -> None:  # type: ignore[type-arg]
    run = _command(commands, "run", "measure a study and write its page", RUN_ABOUT)
    _selection(run)
    how = run.add_argument_group("how to measure")
    how.add_argument("--protocol", default="", metavar="NAME", help="sequential (default), fixed:10+200, second-epoch, epochs:20-first")
    how.add_argument("--rounds", metavar="N or LOW-HIGH", help="processes per framework, instead of the protocol's own")
    how.add_argument("--delta", type=float, default=0.02, metavar="SHARE", help="differences below this are practically none (default 0.02)")
    how.add_argument("--loader-workers", type=int, default=0, metavar="N", help="processes of each framework's own data loader (default 0)")
    how.add_argument("--no-certify", action="store_true", help="measure without proof; such numbers are marked and take part in no verdict")
    how.add_argument("--no-calibrate", action="store_true", help="do not measure this machine's noise floor first; assume one")
    how.add_argument("--no-guard", action="store_true", help="do not repeat rounds during which the machine was disturbed")
    how.add_argument("--silence", type=float, default=600, metavar="SECONDS", help="give up a worker that says nothing for so long (default 600)")
    what = run.add_argument_group("what to do")
    what.add_argument("--dry-run", action="store_true", help="print the plan with a time estimate, and do nothing")
    what.add_argument("--resume", metavar="RUN", help="go on with an interrupted run: its name, or 'latest'")
    what.add_argument("--runs", metavar="DIR", help="where run folders are kept")
    what.add_argument("--json", action="store_true", help="print the result as JSON on standard output")
    what.add_argument("--plain", action="store_true", help="plain lines instead of the live view")


def _certify(commands: argparse._SubParsersAction) -> None:  # type: ignore[type-arg]
    about = """\
Prove, without timing anything, that implementations compute the same function: outputs, loss, every gradient, and
every tensor after five optimizer steps, against a float64 reference on which two frameworks agree. The first tensor
that diverges is named. Certificates are kept and reused until anything that decides them changes."""
    certify = _command(commands, "certify", "prove that frameworks compute the same function", about)
    _selection(certify)
    certify.add_argument("--fresh", action="store_true", help="ignore certificates that are kept")
    certify.add_argument("--runs", metavar="DIR", help="where run folders are kept")
    certify.add_argument("--silence", type=float, default=600, metavar="SECONDS", help="give up a worker that says nothing for so long")
    certify.add_argument("--json", action="store_true", help="print the certificates as JSON")
    certify.add_argument("--plain", action="store_true", help="plain lines instead of the live view")


def _selection(command: argparse.ArgumentParser) -> None:
    chosen = command.add_argument_group("what to compare")
    chosen.add_argument("--study", default="first-look", metavar="NAME", help="a named plan (default first-look), or a .toml file of your own")
    chosen.add_argument("-w", "--workload", action="append", default=[], metavar="NAME[:PRESET]", help="network and size; may be repeated")
    chosen.add_argument("-f", "--framework", action="append", default=[], metavar="NAME[@VERSION]", help="contender; may be repeated")
    chosen.add_argument("--mode", action="append", default=[], metavar="FRAMEWORK=MODE[,MODE]", help="execution mode(s) of a framework")
    chosen.add_argument("--knob", action="append", default=[], metavar="[FRAMEWORK.]KNOB=VALUE[,VALUE]", help="a setting that changes speed, not results")
    chosen.add_argument("--env", action="append", default=[], metavar="NAME=PYTHON", help="an interpreter of your own that holds the framework")
    chosen.add_argument("--optimizer", default="", metavar="NAME", help="another update rule of the workload")
    chosen.add_argument("--flavour", choices=("native", "strict"), default="native", help="the framework's own optimizer (default), or the canonical formula by hand")
    chosen.add_argument("--device", default="cpu", metavar="NAME", help="cpu (default), cuda, ascend")
    chosen.add_argument("--precision", default="float32", metavar="NAME", help="float32 (default) or float64")
    chosen.add_argument("--threads", metavar="N", help="threads per framework: a number, or 'default' (as each comes); without it one per core")
    chosen.add_argument("--deterministic", action="store_true", help="only deterministic algorithms")
    chosen.add_argument("--data", default="", metavar="DIR", help="folder that holds data sets in their official layout")
    chosen.add_argument("--workloads", action="append", default=[], metavar="DIR", help="folder with workloads of your own")
    chosen.add_argument("--seed", type=int, default=1, metavar="N", help="seed of weights, data order and round order (default 1)")


def _report(commands: argparse._SubParsersAction) -> None:  # type: ignore[type-arg]
    about = """\
Write the page of a run again from its record, and print its verdict table. Nothing is measured."""
    report = _command(commands, "report", "write a run's page again from its record", about)
    report.add_argument("run", nargs="?", default="latest", help="name of a run (default: the latest)")
    report.add_argument("--runs", metavar="DIR", help="where run folders are kept")
    report.add_argument("--json", action="store_true", help="print the result as JSON")
    report.add_argument("--output", metavar="FILE", help="write the page here instead of into the run's folder")


def _compare(commands: argparse._SubParsersAction) -> None:  # type: ignore[type-arg]
    about = """\
Compare two contenders of one run, or two runs with each other.

examples:
  steelyard compare pytorch jax                     two frameworks in the latest run
  steelyard compare pytorch/eager pytorch/compiled  two modes in the latest run
  steelyard compare 20260101-1200 20260301-0900     every contender, before and after"""
    compare = _command(commands, "compare", "compare two contenders, or two runs", about)
    compare.add_argument("a", metavar="A")
    compare.add_argument("b", metavar="B")
    compare.add_argument("--run", default="latest", help="the run that holds both contenders (default: the latest)")
    compare.add_argument("--runs", metavar="DIR", help="where run folders are kept")
    compare.add_argument("--json", action="store_true", help="print the comparison as JSON")


def _list(commands: argparse._SubParsersAction) -> None:  # type: ignore[type-arg]
    about = "List what there is: frameworks with modes and knobs, workloads with presets, studies, data sets, or runs."
    listing = _command(commands, "list", "list frameworks, workloads, studies, data or runs", about)
    listing.add_argument("what", choices=("frameworks", "workloads", "studies", "data", "runs"))
    listing.add_argument("--workloads", action="append", default=[], metavar="DIR", help="folder with workloads of your own")
    listing.add_argument("--runs", metavar="DIR", help="where run folders are kept")
    listing.add_argument("--json", action="store_true", help="print the list as JSON")


def _env(commands: argparse._SubParsersAction) -> None:  # type: ignore[type-arg]
    about = """\
Manage the isolated environments, one per framework and version. They are made when a run needs them, so this command
is for making them early, looking at them, and freeing their space."""
    env = _command(commands, "env", "create, list or remove environments", about)
    env.add_argument("action", choices=("create", "list", "remove"))
    env.add_argument("names", nargs="*", metavar="NAME[@VERSION]", help="frameworks; without any: all of them")
    env.add_argument("--device", default="cpu", metavar="NAME", help="cpu (default), cuda, ascend")
    env.add_argument("--json", action="store_true", help="print the list as JSON")
    env.add_argument("--plain", action="store_true", help="plain lines instead of progress bars")


def _doctor(commands: argparse._SubParsersAction) -> None:  # type: ignore[type-arg]
    about = "Examine this machine: can environments be made, is it quiet enough to measure on, what is missing for which mode."
    doctor = _command(commands, "doctor", "is this machine fit to measure on?", about)
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")


class _Version(argparse.Action):
    """Print the version without importing anything for it unless asked."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from steelyard import __version__

        print(f"steelyard {__version__}")
        parser.exit()
