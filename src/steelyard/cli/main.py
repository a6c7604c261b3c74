"""argv -> a command. Hardly anything is imported here: `steelyard --help` must be immediate."""

from __future__ import annotations

import errno
import importlib
import sys

EXIT_INTERRUPTED = 130
EXIT_PIPE = 141
# What a person can mend about a disk; any other operating system error is a fault of this program.
MENDABLE = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENOTDIR,
    errno.EEXIST,
}

ABOUT = """\
steelyard weighs deep-learning frameworks against each other on this machine: the same network with the
same weights on the same batches in every framework, proved to be the same computation (a certificate),
timed in fresh processes and interleaved rounds, and judged with intervals.

Start with:   steelyard run            everything by default: about ten minutes the first time
              steelyard run --dry-run  what that would do, and how long it would take
              steelyard doctor         is this machine fit to measure on?
"""


# Command -> what it does, in a line.
COMMANDS = {
    "run": "measure a study and write its page",
    "certify": "prove that frameworks compute the same function",
    "report": "write a run's page again from its record",
    "compare": "compare two contenders, or two runs",
    "list": "list frameworks, workloads, presets, studies, data or runs",
    "new": "begin a workload of your own",
    "env": "create, list or remove environments",
    "doctor": "is this machine fit to measure on?",
}


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit code. A person's mistake ends in a sentence, never in a traceback."""
    argv = sys.argv[1:] if argv is None else argv
    if argv in ([], ["-h"], ["--help"]):
        print(overview())
        return 0
    from steelyard.cli.arguments import parser
    from steelyard.errors import UserError, nearest

    _end_as_interrupted()
    try:
        if argv[0] not in COMMANDS and not argv[0].startswith("-"):
            raise UserError(f"There is no command '{argv[0]}'.{nearest(argv[0], list(COMMANDS))}")
        arguments = parser(argv).parse_args(argv)
        module = importlib.import_module(f"steelyard.cli.commands.{arguments.module}")
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


def overview() -> str:
    """Return the text of `steelyard --help`; parsing arguments would take longer than everything else it does."""
    commands = "\n".join(f"  {name:<10}{line}" for name, line in COMMANDS.items())
    return (
        f"usage: steelyard [-h] [--version] COMMAND ...\n\n{ABOUT}\ncommands:\n{commands}\n\n"
        "options:\n  -h, --help  show this message and stop; `steelyard COMMAND --help` explains a command\n"
        "  --version   print the version and stop"
    )


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
