"""One file from its official address: resumed where it stopped, checked when it is whole."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, BinaryIO

from steelyard.errors import UserError
from steelyard.inputs.data.request import Progress
from steelyard.inputs.data.source import digest_file

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.inputs.data.catalogue import Layout
    from steelyard.inputs.data.request import Report

CHUNK_BYTES = 1 << 18
REPORT_BYTES = 1 << 22
TIMEOUT_S = 20.0


def download(layout: Layout, folder: Path, report: Report, timeout_s: float = TIMEOUT_S) -> Path:
    """Return the file `folder/layout.path`, downloaded unless it is there.

    UserError when the address does not answer, the connection ends early (what came is kept, and the next
    call goes on from there), or the checksum is not the official one (what came is removed).
    """
    target = folder / layout.path
    if target.exists() and target.stat().st_size == layout.bytes:
        return target
    folder.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".partial")
    try:
        if not partial.exists() or partial.stat().st_size < layout.bytes:
            _transfer(layout, partial, report, timeout_s)
    except (OSError, http.client.HTTPException) as error:
        if (
            isinstance(error, OSError)
            and error.errno
            and not isinstance(error, urllib.error.URLError | ConnectionError)
        ):
            raise
        raise UserError(f"{layout.url} could not be downloaded ({_reason(error)}).") from error
    _check(layout, partial)
    return partial.rename(target)


def _transfer(layout: Layout, partial: Path, report: Report, timeout_s: float) -> None:
    have = partial.stat().st_size if partial.exists() else 0
    request = urllib.request.Request(layout.url, headers={"Range": f"bytes={have}-"} if have else {})
    report(Progress(f"Downloading {layout.url}", have, layout.bytes))
    with urllib.request.urlopen(request, timeout=timeout_s) as response:
        resumed = response.status == http.HTTPStatus.PARTIAL_CONTENT
        with partial.open("ab" if resumed else "wb") as file:
            _copy(response, file, layout, report)


def _copy(response: http.client.HTTPResponse, file: BinaryIO, layout: Layout, report: Report) -> None:
    reported = file.tell()
    while chunk := response.read(CHUNK_BYTES):
        file.write(chunk)
        if file.tell() > layout.bytes:
            return  # longer than the official file: the check names it
        if file.tell() - reported >= REPORT_BYTES or file.tell() == layout.bytes:
            reported = file.tell()
            report(Progress(f"Downloading {layout.url}", reported, layout.bytes))


def _check(layout: Layout, partial: Path) -> None:
    size = partial.stat().st_size
    if size < layout.bytes:
        raise UserError(
            f"{layout.url} stopped after {size:,} of {layout.bytes:,} bytes; "
            "run the same command again to go on from there."
        )
    digest = digest_file(partial, layout.algorithm)
    if size > layout.bytes or digest != layout.digest:
        partial.unlink()
        raise UserError(
            f"{layout.url} gave {size:,} bytes with {layout.algorithm} {digest}, not the official "
            f"{layout.digest}; what came was removed."
        )


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    return f"{type(error).__name__}: {reason}" if str(reason) else type(error).__name__
