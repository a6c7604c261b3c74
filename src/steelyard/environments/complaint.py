"""What an installer prints becomes one sentence that a person can act on.

Patterns were read off uv 0.9-0.13 and pip 23-25 in real failures; the whole output stays in a log file.
"""

import re
from dataclasses import dataclass

from steelyard.environments.pip_settings import redact


@dataclass(frozen=True)
class Complaint:
    """One cause of failure. With `pip_may_succeed` it is worth trying pip when uv failed so."""

    kind: str
    sentence: str
    pip_may_succeed: bool = False


# Order matters: a full disk also makes archives look broken, a refused connection makes pip say
# "no matching distribution". (kind, pattern, sentence, whether pip may succeed where uv did not)
CAUSES: tuple[tuple[str, str, str, bool], ...] = (
    (
        "disk full",
        r"No space left on device|os error 28\b|Errno 28\b|Disk quota exceeded|os error 122\b|Errno 122\b",
        "the disk is full; free some space, or put the cache elsewhere with STEELYARD_CACHE",
        False,
    ),
    (
        "file too large",
        r"File too large|os error 27\b|Errno 27\b",
        "a file would be larger than this account may write (see `ulimit -f`)",
        False,
    ),
    (
        "certificate",
        r"invalid peer certificate|CERTIFICATE_VERIFY_FAILED|UnknownIssuer|certificate verify failed",
        "the package registry's certificate is not trusted; name your authority's file in pip's `cert` setting",
        True,
    ),
    (
        "credentials",
        r"\b(401|403) (Unauthorized|Forbidden)|status code (401|403)|(401|403) Client Error"
        r"|\b407 Proxy Authentication",
        "the package registry or the proxy refused the credentials; see pip's `index-url` and `proxy` settings",
        True,
    ),
    (
        "hash",
        r"Hash mismatch|THESE PACKAGES DO NOT MATCH THE HASHES",
        "a downloaded package does not have the checksum its registry gives; try again, then suspect the mirror",
        False,
    ),
    (
        "damaged",
        r"Failed to extract archive|Invalid zip|unable to locate the end of central directory|BadZipFile"
        r"|is not a zip file|located at \S+ is invalid|Wheel '\S+' .*is invalid|Failed to read metadata"
        r"|corrupt (deflate|gzip)|Failed to deserialize cache entry",
        "a package file is damaged; empty the installer's cache (`uv cache clean`, `pip cache purge`), or"
        " remove the file from your find-links folder, and try again",
        False,
    ),
    (
        "network",
        r"Connection refused|tcp connect error|dns error|failed to lookup address|Name or service not known"
        r"|Temporary failure in name resolution|Network is unreachable|No route to host|timed out"
        r"|NewConnectionError|ConnectTimeout|error sending request|Failed to fetch|Connection reset"
        r"|Remote end closed connection",
        "the package registry cannot be reached; look at the network, and at pip's `index-url` and `proxy`"
        " settings",
        False,
    ),
    (
        "no wheel",
        r"has no usable wheels|has no wheels with a matching|not a supported wheel on this platform"
        r"|Requires-Python|requires a different Python|doesn't have a source distribution or wheel",
        "there is no package file for this Python or this kind of machine",
        False,
    ),
    (
        "no version",
        r"there is no version of|was not found in the (package registry|provided package locations)"
        r"|No matching distribution found|No solution found",
        "the package registry does not have the pinned version",
        False,
    ),
    (
        "build",
        r"Failed to build|Failed building wheel|failed to build|Build backend failed",
        "a package exists only in source form and did not build here",
        True,
    ),
    (
        "permission",
        r"Permission denied|os error 13\b|Errno 13\b|Read-only file system|os error 30\b|Errno 30\b",
        "writing was refused; make the cache folder writable, or choose another with STEELYARD_CACHE",
        False,
    ),
    (
        "venv",
        r"ensurepip is not available|No module named '?(venv|ensurepip|pip)'?",
        "this Python cannot make virtual environments: install its venv package (`python3-venv` on Debian and"
        " Ubuntu), or install uv",
        False,
    ),
    ("crash", r"panicked at|Segmentation fault", "the installer crashed", True),
    (
        "arguments",
        r"unexpected argument|unrecognized subcommand|no such option",
        "this installer is too old for the options it was given; update it",
        True,
    ),
)

NAMED = re.compile(
    r"there is no version of (\S+?)[ ,]|(\S+) has no usable wheels|No matching distribution found for (\S+)"
    r"|Failed to (?:download|build|install):? `?([^`\s]+)|the requirement (\S+) \(from"
    r"|(\S+) was not found in the"
)


def explain(output: str, returncode: int = 1) -> Complaint:
    """The cause of a failure, from everything the installer printed and its exit code."""
    for kind, pattern, sentence, pip_may_succeed in CAUSES:
        if re.search(pattern, output):
            return Complaint(kind, sentence + _about(output, kind), pip_may_succeed)
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
