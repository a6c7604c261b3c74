"""Download one file from its official address: resume an interrupted transfer, and verify the complete file.

The library pooch (1.9) was considered and is not used. It writes to a temporary file that it deletes when a transfer
fails, and requests the whole file again, so an interrupted download of several hundred megabytes cannot be resumed.
"""

import http.client
import urllib.error
import urllib.request
from pathlib import Path
from typing import BinaryIO

from steelyard.errors import UserError
from steelyard.inputs.data.layouts import Layout
from steelyard.inputs.data.request import Progress, Report
from steelyard.inputs.data.source import digest_file

CHUNK_BYTES = 1 << 18
REPORT_BYTES = 1 << 22
TIMEOUT_S = 20.0


def download(layout: Layout, folder: Path, report: Report, timeout_s: float = TIMEOUT_S) -> Path:
    """Return the file `folder/layout.path`; download it if it is missing. Proxy variables of the environment apply.

    UserError: the address does not answer; the connection ended early (the part is stored, and the next call resumes);
    the checksum is not the official one (the file is removed).
    """
    target = folder / layout.path
    if target.exists() and target.stat().st_size == layout.bytes:
        return target
    folder.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".partial")  # the same name in every call, so that a transfer can resume
    try:
        if not partial.exists() or partial.stat().st_size < layout.bytes:
            _transfer(layout, partial, report, timeout_s)
    except (OSError, http.client.HTTPException) as error:
        if _is_local(error):
            raise
        raise UserError(f"{layout.url} could not be downloaded ({_reason(error)}).") from error
    _check(layout, partial)
    return partial.rename(target)


def _is_local(error: Exception) -> bool:
    """Report whether an error comes from this machine, such as a full disk, and not from the network."""
    network = isinstance(error, urllib.error.URLError | ConnectionError)
    return isinstance(error, OSError) and bool(error.errno) and not network


def _transfer(layout: Layout, partial: Path, report: Report, timeout_s: float) -> None:
    present = partial.stat().st_size if partial.exists() else 0
    request = urllib.request.Request(layout.url, headers={"Range": f"bytes={present}-"} if present else {})
    report(Progress(f"Downloading {layout.url}", present, layout.bytes))
    with urllib.request.urlopen(request, timeout=timeout_s) as response:
        resumed = response.status == http.HTTPStatus.PARTIAL_CONTENT
        with partial.open("ab" if resumed else "wb") as file:
            _copy(response, file, layout, report)


def _copy(response: http.client.HTTPResponse, file: BinaryIO, layout: Layout, report: Report) -> None:
    reported = file.tell()
    while chunk := response.read(CHUNK_BYTES):
        file.write(chunk)
        if file.tell() > layout.bytes:
            return  # larger than the official file: `_check` rejects it
        if file.tell() - reported >= REPORT_BYTES or file.tell() == layout.bytes:
            reported = file.tell()
            report(Progress(f"Downloading {layout.url}", reported, layout.bytes))


def _check(layout: Layout, partial: Path) -> None:
    size = partial.stat().st_size
    if size < layout.bytes:
        raise UserError(
            f"The download of {layout.url} stopped after {size:,} of {layout.bytes:,} bytes; "
            "run the same command again to resume it."
        )
    digest = digest_file(partial, layout.algorithm)
    if size > layout.bytes or digest != layout.digest:
        partial.unlink()
        raise UserError(
            f"{layout.url} returned {size:,} bytes with {layout.algorithm} {digest}, not the official "
            f"{layout.digest}; the file was removed."
        )


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    return f"{type(error).__name__}: {reason}" if str(reason) else type(error).__name__
