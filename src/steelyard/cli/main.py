"""Run the command named in argv. Imports are kept to a minimum here, so that `steelyard --help` is fast."""

import contextlib
import errno
import importlib
import os
import sys

from steelyard.cli import streams
from steelyard.cli.descriptions import ABOUT, COMMANDS

EXIT_NO_RESULT = 1  # no contender has what was asked for
EXIT_LEFT_OUT = 3  # some contenders have it, and at least one was left out
EXIT_INTERRUPTED = 130
EXIT_PIPE = 141
# Errors of a file system that the user can fix. Any other OSError is a bug of this program and keeps its traceback.
FIXABLE = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENOTDIR,
    errno.EEXIST,
}
DISK_ADVICE = (
    "Finished results are stored. Free some disk space, or set STEELYARD_CACHE and STEELYARD_RUNS to writable folders. "
    "To continue an interrupted run: steelyard run --resume RUN (its name: steelyard runs list)"
)


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code. An error that the user can fix is printed without a traceback."""
    argv = sys.argv[1:] if argv is None else argv
    try:
        with streams.guarded():
            try:
                return _main(argv)
            finally:
                sys.stdout.flush()
    except streams.NobodyReads:
        return EXIT_PIPE


def _main(argv: list[str]) -> int:
    from steelyard.errors import UserError

    try:
        if streams.is_closed():
            raise UserError(streams.CLOSED)
        if argv in ([], ["-h"], ["--help"]):
            print(overview())
            return 0
        code = _executed(argv)
        sys.stdout.flush()
        return code
    except UserError as error:
        from steelyard.results.addresses import hidden_in

        streams.tell(f"steelyard: {one_line(hidden_in(str(error), argv))}")
        return error.exit_code
    except KeyboardInterrupt:
        streams.tell("steelyard: stopped.")
        return EXIT_INTERRUPTED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        if error.errno == errno.ENAMETOOLONG:
            streams.tell(one_line(f"steelyard: {where}{error.strerror}. Give a shorter name."))
        elif error.errno in FIXABLE:
            streams.tell(one_line(f"steelyard: {where}{error.strerror}. {DISK_ADVICE}"))
        else:
            raise
        return UserError.exit_code


def _executed(argv: list[str]) -> int:
    from steelyard.cli.parser import parser
    from steelyard.errors import UserError, nearest

    _treat_signals_as_interrupt()
    _check_names(argv)
    if argv[0] not in COMMANDS and not argv[0].startswith("-"):
        raise UserError(f"There is no command '{argv[0]}'.{nearest(argv[0], list(COMMANDS))}")
    arguments = parser(argv).parse_args(argv)
    module = importlib.import_module(f"steelyard.cli.commands.{arguments.module}")
    code: int = module.execute(arguments)
    return code


def _check_names(argv: list[str]) -> None:
    """Reject names that are not UTF-8: a file system may hold them, but not the record of a run."""
    from steelyard.errors import UserError
    from steelyard.files.paths import cache_folder, runs_folder

    names = [("The argument", each) for each in argv]
    names += [("The folder of runs", str(runs_folder())), ("The cache folder", str(cache_folder()))]
    with contextlib.suppress(OSError):  # the current folder was removed
        names.append(("The current folder", os.getcwd()))  # noqa: PTH109 - as for the other names, a text
    for what, name in names:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise UserError(
                f"{what} {name} is not UTF-8, which records and pages of runs must be. Rename it, or choose another one."
            ) from None


def overview() -> str:
    """Return the text of `steelyard --help`. Importing argparse for it would take longer than everything else."""
    commands = "\n".join(f"  {name:<14}{line}" for name, line in COMMANDS.items())
    return (
        f"usage: steelyard [-h] [--version] COMMAND ...\n\n{ABOUT}\ncommands:\n{commands}\n\n"
        "options:\n  -h, --help  print this message and exit; `steelyard COMMAND --help` explains one command\n"
        "  --version   print the version and exit"
    )


def one_line(error: object) -> str:
    """Return the text of an error with control characters escaped: names and files may contain them, even terminal commands."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in str(error))


def _treat_signals_as_interrupt() -> None:
    """Handle SIGTERM and SIGHUP (`kill`, a closed terminal) like Ctrl-C, so that a run stops cleanly."""
    import signal

    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
