"""What an installer prints becomes one sentence that a person can act on.

The patterns were read off real failures of uv 0.13 and pip 23; the whole output stays in a log file.
"""

import re
import signal
from dataclasses import dataclass

from steelyard.environments.pip_settings import redact


@dataclass(frozen=True)
class Complaint:
    """One cause of failure. With `pip_may_succeed` it is worth trying pip when uv failed so."""

    kind: str
    sentence: str
    pip_may_succeed: bool = False


@dataclass(frozen=True)
class Cause:
    """A kind of failure: any of the patterns in an installer's output shows it."""

    kind: str
    patterns: tuple[str, ...]
    sentence: str
    pip_may_succeed: bool = False


# Order matters: a full disk also makes archives look broken, and a refused connection makes pip say that
# nothing matches.
CAUSES = (
    Cause(
        "disk full",
        (
            r"No space left on device",
            r"os error 28\b",
            r"Errno 28\b",
            r"Disk quota exceeded",
            r"os error 122\b",
            r"Errno 122\b",
        ),
        "the disk is full; free some space, or put the cache elsewhere with STEELYARD_CACHE",
    ),
    Cause(
        "file too large",
        (
            r"File too large",
            r"os error 27\b",
            r"Errno 27\b",
        ),
        "a file would be larger than this account may write (see `ulimit -f`)",
    ),
    Cause(
        "certificate",
        (
            r"invalid peer certificate",
            r"CERTIFICATE_VERIFY_FAILED",
            r"UnknownIssuer",
            r"certificate verify failed",
        ),
        ("the package registry's certificate is not trusted; name your authority's file in pip's `cert` setting"),
        pip_may_succeed=True,
    ),
    Cause(
        "credentials",
        (
            r"\b(401|403) (Unauthorized|Forbidden)",
            r"status code (401|403)",
            r"(401|403) Client Error",
            r"\b407 Proxy Authentication",
        ),
        ("the package registry or the proxy refused the credentials; see pip's `index-url` and `proxy` settings"),
        pip_may_succeed=True,
    ),
    Cause(
        "hash",
        (
            r"Hash mismatch",
            r"THESE PACKAGES DO NOT MATCH THE HASHES",
        ),
        ("a downloaded package does not have the checksum its registry gives; try again, then suspect the mirror"),
    ),
    Cause(
        "damaged",
        (
            r"Failed to extract archive",
            r"Invalid zip",
            r"unable to locate the end of central directory",
            r"BadZipFile",
            r"is not a zip file",
            r"located at \S+ is invalid",
            r"Wheel '\S+' .*is invalid",
            r"Failed to read metadata",
            r"corrupt (deflate|gzip)",
            r"Failed to deserialize cache entry",
        ),
        (
            "a package file is damaged; empty the installer's cache (`uv cache clean`, `pip cache "
            "purge`), or remove the file from your find-links folder, and try again"
        ),
    ),
    Cause(
        "network",
        (
            r"Connection refused",
            r"tcp connect error",
            r"dns error",
            r"failed to lookup address",
            r"Name or service not known",
            r"Temporary failure in name resolution",
            r"Network is unreachable",
            r"No route to host",
            r"timed out",
            r"NewConnectionError",
            r"ConnectTimeout",
            r"error sending request",
            r"Failed to fetch",
            r"Connection reset",
            r"Remote end closed connection",
        ),
        ("the package registry cannot be reached; look at the network, and at pip's `index-url` and `proxy` settings"),
    ),
    Cause(
        "no wheel",
        (
            r"has no usable wheels",
            r"has no wheels with a matching",
            r"not a supported wheel on this platform",
            r"Requires-Python",
            r"requires a different Python",
            r"doesn't have a source distribution or wheel",
        ),
        "there is no package file for this Python or this kind of machine",
    ),
    Cause(
        "no version",
        (
            r"there is no version of",
            r"was not found in the (package registry|provided package locations)",
            r"No matching distribution found",
            r"No solution found",
        ),
        "the package registry does not have the pinned version",
    ),
    Cause(
        "build",
        (
            r"Failed to build",
            r"Failed building wheel",
            r"failed to build",
            r"Build backend failed",
        ),
        "a package exists only in source form and did not build here",
        pip_may_succeed=True,
    ),
    Cause(
        "permission",
        (
            r"Permission denied",
            r"os error 13\b",
            r"Errno 13\b",
            r"Read-only file system",
            r"os error 30\b",
            r"Errno 30\b",
        ),
        ("writing was refused; make the cache folder writable, or choose another with STEELYARD_CACHE"),
    ),
    Cause(
        "venv",
        (
            r"ensurepip is not available",
            r"No module named '?(venv|ensurepip|pip)'?",
        ),
        (
            "this Python cannot make virtual environments: install its venv package (`python3-venv` "
            "on Debian and Ubuntu), or install uv"
        ),
    ),
    Cause(
        "crash",
        (
            r"panicked at",
            r"Segmentation fault",
        ),
        "the installer crashed",
        pip_may_succeed=True,
    ),
    Cause(
        "arguments",
        (
            r"unexpected argument",
            r"unrecognized subcommand",
            r"no such option",
        ),
        "this installer is too old for the options it was given; update it",
        pip_may_succeed=True,
    ),
)

NAMED = re.compile(
    r"there is no version of (\S+?)[ ,]|(\S+) has no usable wheels|No matching distribution found for (\S+)"
    r"|Failed to (?:download|build|install):? `?([^`\s]+)|the requirement (\S+) \(from"
    r"|(\S+) was not found in the"
)


def explain(output: str, returncode: int = 1) -> Complaint:
    """The cause of a failure, from everything the installer printed and its exit code."""
    for cause in CAUSES:
        if any(re.search(pattern, output) for pattern in cause.patterns):
            return Complaint(cause.kind, cause.sentence + _about(output, cause.kind), cause.pip_may_succeed)
    if returncode == -getattr(signal, "SIGXFSZ", 0) < 0:
        return explain("File too large")
    if returncode < 0:
        return Complaint("crash", f"the installer was killed by signal {-returncode}", pip_may_succeed=True)
    said = [line.strip() for line in output.splitlines() if line.strip()]
    last = redact(said[-1])[:300] if said else "nothing"
    return Complaint("other", f"the installer ended with code {returncode} and said: {last}")


def _about(output: str, kind: str) -> str:
    if kind not in ("no version", "no wheel", "damaged", "hash", "build"):
        return ""
    found = NAMED.search(output)
    name = next((group for group in found.groups() if group), "") if found else ""
    return f" ({redact(name).rstrip('.,')})" if name else ""
