"""Why an installation failed, in one sentence: a cause the user can act on, and the words of uv, pip or a compiler."""

import re
import signal

CREDENTIALS = re.compile(r"(?<=://)[^/\s'\"]+@")
# uv before 0.13 wrote `Caused by:`, and drew resolution errors as a tree.
MESSAGE = re.compile(r"^\s*(?:error:|cause:|Caused by:|[×╰─▶]+)\s*(\S.*)")
# A compiler names the place: `operations.cc:12:3: fatal error: ...`.
COMPILER_MESSAGE = re.compile(r"^\s*(?:\S*/)?(\S+?):\d+(?::\d+)?: (?:fatal )?error: (\S.*)")

# The patterns come from real failures of uv 0.13. Order matters: a full disk also makes archives look damaged.
CAUSES = (
    (
        r"No space left on device|Disk quota exceeded|os error (28|122)\b",
        "the disk is full; free some space, or set STEELYARD_CACHE to a folder on a larger disk",
    ),
    (
        r"Python\.h: No such file",
        "Python's headers are not installed; install the package python3-dev (Debian, Ubuntu) or python3-devel (Fedora, RHEL)",
    ),
    (
        r"Killed signal terminated program cc1plus|virtual memory exhausted",
        "the memory was not enough for the compiler; close other programs",
    ),
    (
        r"Permission denied|Read-only file system|os error (13|30)\b",
        "writing was refused; make the folder writable, or set STEELYARD_CACHE to another",
    ),
    (
        r"No interpreter found",
        "the required Python is not installed; install it, or name an interpreter that holds the framework with --env",
    ),
    (
        r"No solution found|no usable wheels|no wheels with a matching|was not found in the",
        "no package index has the pinned version for this Python and machine",
    ),
    (
        r"(client|server|connect|dns) error|Failed to fetch|Request failed|timed out|Connection (refused|reset)",
        "the package registry cannot be reached; check the network and the index, proxy and certificate settings of uv or pip",
    ),
)


class InstallError(Exception):
    """An installation failed; the text is one sentence without a full stop."""


def explain(output: str, returncode: int, program: str = "uv") -> str:
    """Return why a program failed, from its output and its exit code: the cause if it is known, then its message."""
    message = _message(output)
    if returncode < 0:
        message = f"it was ended by signal {-returncode} ({signal.strsignal(-returncode)})"
    cause = find_cause(output)
    return f"{cause} ({program}: {message})" if cause else f"{program} failed: {message}"


def find_cause(text: str) -> str:
    """Return the known cause of a message, with what to do about it; empty when the message is unknown."""
    return next((cause for pattern, cause in CAUSES if re.search(pattern, text)), "")


def redact(text: str) -> str:
    """Return the text without the user names and passwords of its URLs."""
    return CREDENTIALS.sub("***@", text)


def _message(output: str) -> str:
    """Return the first error of a compiler; else uv's error and its innermost cause, or the last line where there is neither."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if compiler := next((found for line in lines if (found := COMPILER_MESSAGE.match(line))), None):
        return f"{compiler[1]}: {compiler[2]}"[:400]
    messages = [found[1] for line in lines if (found := MESSAGE.match(line))]
    chosen = dict.fromkeys((messages[0], messages[-1])) if messages else lines[-1:]
    return redact(": ".join(chosen)).rstrip(".")[:400] or "it printed nothing"
