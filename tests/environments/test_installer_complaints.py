"""What installers printed in real failures becomes the right sentence."""

import pytest

from steelyard.environments.complaint import explain

CLOSED_PORT = """error: Request failed after 1 retry in 1.0s
  cause: Failed to fetch: http://127.0.0.1:9/simple/six/
  cause: tcp connect error
  cause: Connection refused (os error 111)
"""
NO_NAME = """error: Request failed after 3 retries in 8.9s
  cause: dns error
  cause: failed to lookup address information: Name or service not known
"""
NO_VERSION = """error: No solution found when resolving dependencies
  cause: Because there is no version of six==99 and you require six==99, we can conclude that your
requirements are unsatisfiable.
"""
NO_WHEEL = """error: No solution found when resolving dependencies
  cause: Because numpy==1.20.0 has no usable wheels and you require numpy==1.20.0, we can conclude that
"""
DAMAGED = """error: Failed to download `six==1.17.0`
  cause: Failed to extract archive: wheels/six-1.17.0-py2.py3-none-any.whl
  cause: Invalid zip file structure
  cause: unable to locate the end of central directory record
"""
FULL = """error: Failed to download `numpy==2.4.6`
  cause: Failed to extract archive: numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl
  cause: I/O operation failed during extraction
  cause: failed to write to file `c/.tmp1x4ChM/numpy/x.so`: No space left on device (os error 28)
"""
PIP_FULL = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n"
PIP_NO_VERSION = """ERROR: Could not find a version that satisfies the requirement six==99 (from versions: 1)
ERROR: No matching distribution found for six==99
"""
PIP_CLOSED_PORT = """WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(...:
Failed to establish a new connection: [Errno 111] Connection refused')': /simple/six/
ERROR: No matching distribution found for six
"""
PIP_DAMAGED = "ERROR: Wheel 'six' located at wheels/six-1.17.0-py2.py3-none-any.whl is invalid.\n"
CERTIFICATE = "  cause: invalid peer certificate: UnknownIssuer\n"
OLD = "error: unexpected argument '--nonsense' found\n"


@pytest.mark.parametrize(
    ("output", "kind", "part"),
    [
        (CLOSED_PORT, "network", "cannot be reached"),
        (NO_NAME, "network", "cannot be reached"),
        (NO_VERSION, "no version", "(six==99)"),
        (NO_WHEEL, "no wheel", "(numpy==1.20.0)"),
        (DAMAGED, "damaged", "(six==1.17.0)"),
        (FULL, "disk full", "STEELYARD_CACHE"),
        (PIP_FULL, "disk full", "STEELYARD_CACHE"),
        (PIP_NO_VERSION, "no version", "(six==99)"),
        (PIP_CLOSED_PORT, "network", "cannot be reached"),
        (PIP_DAMAGED, "damaged", "purge"),
        (CERTIFICATE, "certificate", "`cert`"),
        (OLD, "arguments", "update it"),
    ],
)
def test_a_real_failure_is_named(output: str, kind: str, part: str) -> None:
    complaint = explain(output)
    assert complaint.kind == kind
    assert part in complaint.sentence
    assert "\n" not in complaint.sentence


def test_pip_is_worth_trying_after_a_certificate_or_a_crash_but_not_after_a_full_disk() -> None:
    assert explain(CERTIFICATE).pip_may_succeed
    assert explain("", -11).pip_may_succeed
    assert not explain(FULL).pip_may_succeed
    assert not explain(NO_VERSION).pip_may_succeed


def test_an_unknown_failure_quotes_the_last_line_without_credentials() -> None:
    complaint = explain("first\nsomething odd at https://me:pw@host/\n\n", 3)
    assert complaint.sentence.endswith("code 3 and said: something odd at https://***@host/")


def test_a_limit_on_file_sizes_is_recognised_by_its_signal() -> None:
    assert explain("", -25).kind == "file too large"
