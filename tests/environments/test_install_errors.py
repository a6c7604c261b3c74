"""uv's output in real failures becomes one sentence with the cause."""

import pytest

from steelyard.environments.install_errors import explain

REFUSED = """error: Request failed after 1 retry in 1.0s
  cause: Failed to fetch: http://127.0.0.1:9/simple/six/
  cause: error sending request for url (http://127.0.0.1:9/simple/six/)
  cause: client error (Connect)
  cause: tcp connect error
  cause: Connection refused (os error 111)
"""
UNKNOWN_HOST = """error: Request failed after 3 retries in 8.9s
  cause: dns error
  cause: failed to lookup address information: Name or service not known
"""
CREDENTIALS = """error: Failed to fetch: https://host/simple/six/
  cause: HTTP status client error (401 Unauthorized) for url (https://host/simple/six/)
"""
CERTIFICATE = "error: Request failed\n  cause: invalid peer certificate: UnknownIssuer\n"
NO_VERSION = """error: No solution found when resolving dependencies
  cause: Because there is no version of six==99 and you require six==99, we can conclude that your requirements are unsatisfiable.
"""
# As uv 0.9 prints it.
NO_VERSION_TREE = """  × No solution found when resolving dependencies:
  ╰─▶ Because there is no version of six==99 and you require six==99
"""
NO_WHEEL = """error: No solution found when resolving dependencies
  cause: Because numpy==1.20.0 has no usable wheels and you require numpy==1.20.0
"""
NO_PYTHON = """error: No interpreter found for Python 3.99 in managed installations or search path

hint: uv embeds available Python downloads and may require an update to install new versions.
"""
FULL = """error: Failed to download `numpy==2.4.6`
  cause: Failed to extract archive: numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl
  cause: failed to write to file `c/.tmp1x4ChM/numpy/x.so`: No space left on device (os error 28)
"""
READ_ONLY = "error: Failed to initialize cache at `/c`\n  cause: Read-only file system (os error 30)\n"
DAMAGED = """error: Failed to download `six==1.17.0`
  cause: Failed to extract archive: wheels/six-1.17.0-py2.py3-none-any.whl
  cause: unable to locate the end of central directory record
"""


@pytest.mark.parametrize(
    ("output", "cause", "message"),
    [
        (REFUSED, "cannot be reached", "Request failed after 1 retry in 1.0s: Connection refused (os error 111)"),
        (UNKNOWN_HOST, "cannot be reached", "Name or service not known"),
        (CREDENTIALS, "index, proxy and certificate settings", "401 Unauthorized"),
        (CERTIFICATE, "certificate settings", "UnknownIssuer"),
        (NO_VERSION, "no package index has the pinned version", "no version of six==99"),
        (NO_VERSION_TREE, "no package index has the pinned version", "no version of six==99"),
        (NO_WHEEL, "no package index has the pinned version for this Python", "numpy==1.20.0 has no usable wheels"),
        (NO_PYTHON, "the required Python is not installed", "Python 3.99"),
        (FULL, "the disk is full", "`numpy==2.4.6`"),
        (READ_ONLY, "writing was refused", "(os error 30)"),
        (DAMAGED, "uv failed", "`six==1.17.0`: unable to locate the end of central directory record"),
    ],
)
def test_a_real_failure_has_its_cause_and_the_message_of_uv(output: str, cause: str, message: str) -> None:
    sentence = explain(output, 1)
    assert cause in sentence
    assert message in sentence
    assert "\n" not in sentence


def test_an_unknown_failure_has_the_last_line_without_credentials() -> None:
    assert (
        explain("first\nsomething odd at https://me:pw@host/\n\n", 3) == "uv failed: something odd at https://***@host/"
    )


def test_a_failure_without_output_is_reported_as_such() -> None:
    assert explain("", 2) == "uv failed: it printed nothing"


def test_a_signal_is_named() -> None:
    assert explain("Downloading numpy\n", -25) == "uv failed: it was ended by signal 25 (File size limit exceeded)"
