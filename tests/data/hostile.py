"""Folders as people have them: beside the files of a layout, everything that lies around in folders."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import official_layouts as layouts
import soundfile
from hypothesis import strategies as st
from PIL import Image

from steelyard.inputs.data.inventory import CHANGED, LEFT_OUT, shown
from steelyard_worker.network import Input

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Any

STEMS = (
    "a",
    "b c",
    "\u00e4\u4e2d",
    "line\nbreak",
    os.fsdecode(b"\xff\xfe"),
    "..",
    "%s{x}",
    "it's",
    "x" * 120,
    "0_3",
    "1-1-0000",
    "7",
)
HIDDEN = (
    ".DS_Store",
    "._0.png",
    ".hidden.txt",
    ".0.jpg",
    ".wiki_00",
    "Thumbs.db",
    "desktop.ini",
    "README",
    "vocab.txt.bak",
)
FOLDERS = ("", ".ipynb_checkpoints/", "sub/", "sub/deeper/", "__MACOSX/")


@dataclass(frozen=True)
class Entry:
    """One thing in a folder: its path relative to the root; `kind`: file, folder, pipe or link.

    content: of a file, a key of `CONTENTS`; of a link, where it leads.
    """

    path: str
    kind: str
    content: str = ""

    @property
    def bytes(self) -> bytes:
        return CONTENTS[self.content]


def picture(mode: str = "RGB", form: str = "PNG", size: tuple[int, int] = (24, 20), **saved: Any) -> bytes:
    """Return an encoded picture; mode "I;16" has 16 bits."""
    rows, columns = np.mgrid[0 : size[1], 0 : size[0]]
    values = (rows * 7 + columns * 3) % 256
    if mode == "I;16":
        image = Image.fromarray((values * 200 + 10_000).astype(np.uint16))
    else:
        image = Image.fromarray(values.astype(np.uint8)).convert(mode)
    content = io.BytesIO()
    image.save(content, form, **saved)
    return content.getvalue()


def sound(rate: int = 16_000, form: str = "WAV", samples: int = 6_000, **written: Any) -> bytes:
    """Return an encoded recording of noise."""
    content = io.BytesIO()
    soundfile.write(
        content, 0.1 * np.random.default_rng(samples).standard_normal(samples), rate, format=form, **written
    )
    return content.getvalue()


def array(values: Any) -> bytes:
    """Return the content of an .npy file."""
    content = io.BytesIO()
    np.save(content, values, allow_pickle=True)
    return content.getvalue()


def archive(**values: Any) -> bytes:
    """Return the content of an .npz file."""
    content = io.BytesIO()
    np.savez(content, **values)
    return content.getvalue()


def _whole_and_cut(contents: dict[str, bytes]) -> dict[str, bytes]:
    return contents | {f"{name}, cut": content[: len(content) * 2 // 3] for name, content in contents.items()}


PICTURES = _whole_and_cut(
    {
        "png": picture(),
        "alpha": picture("RGBA"),
        "16 bits": picture("I;16"),
        "jpeg": picture("L", "JPEG"),
        "webp": picture("RGB", "WEBP"),
        "bmp": picture("RGB", "BMP"),
    }
)
SOUNDS = _whole_and_cut(
    {
        "wav": sound(),
        "flac": sound(form="FLAC"),
        "22 kHz": sound(22_050),
        "short": sound(samples=100),
        "ogg": sound(form="OGG"),
        "floats": sound(subtype="FLOAT"),
    }
)
TEXTS = {
    "empty": b"",
    "empty lines": b"\n\n",
    "mark": b"\xef\xbb\xbfmarked text\n",
    "crlf": b"one\r\ntwo\r\n",
    "cr": b"one\rtwo\r",
    "latin-1": "caf\u00e9\n".encode("latin-1"),
    "zeros": b"\0\1\2",
    "separators": "\u2028\u0085\n".encode(),
    "line": b"A good film.\n",
    "cyrillic": "\u041f\u0440\u0438\u0432\u0435\u0442\n".encode(),
    "open": b"<doc id='1'>\nno end\n",
    "utf-16": "utf-16\n".encode("utf-16"),
    "doc": "<doc >\n\u7b2c\u4e00\u3002\n</doc>\n".encode(),
}
BATCHES = {"records": layouts.cifar_records(20, 3).tobytes(), "wrong label": bytes([200]) * 3073}
ARRAY_INPUT = Input("x", (2,), "int32", high=9)
ARRAYS = _whole_and_cut(
    {
        "npy": array(np.arange(12).reshape(6, 2) % 9),
        "npz": archive(x=np.arange(8).reshape(4, 2)),
        "npz, other": archive(y=np.ones(3)),
        "npz, both": archive(x=np.ones((3, 2), "i4"), y=np.ones(3)),
        "Fortran": array(np.ones((5, 2), "i8", order="F")),
    }
) | {
    "objects": array(np.array([[{}, {}]], dtype=object)),
    "floats": array(np.ones((4, 2))),
    "wide": array(np.ones((4, 3), "i4")),
    "above": array(np.full((4, 2), 9)),
    "no rows": array(np.ones((0, 2), "i4")),
    "a number": array(np.int32(1)),
    "text": b"1 2\n3 4\n",
}
CONTENTS = PICTURES | SOUNDS | TEXTS | BATCHES | ARRAYS


def entries(
    folders: Iterable[str], suffixes: Iterable[str], contents: Iterable[str], names: Iterable[str] = HIDDEN
) -> st.SearchStrategy[list[Entry]]:
    """Draw up to six things that lie in or below folders of a layout; `names`: that a reader takes, as they are."""
    where = st.builds(lambda folder, below: folder + below, st.sampled_from([*folders]), st.sampled_from(FOLDERS))
    endings = [each for suffix in suffixes for each in (suffix, suffix.upper(), suffix + "~")]
    named = st.builds(lambda stem, ending: stem + ending, st.sampled_from(STEMS), st.sampled_from(endings))
    name = st.one_of(named, st.sampled_from(HIDDEN), st.sampled_from([*names]), st.sampled_from([*names]))
    places = st.one_of(st.sampled_from([*folders]), where)
    path = st.builds(lambda folder, name: folder + name, places, name)
    drawn = st.one_of(
        st.builds(Entry, path, st.just("file"), st.sampled_from([*contents])),
        st.builds(Entry, path, st.just("file"), st.sampled_from([*contents])),
        st.builds(Entry, path, st.just("folder")),
        st.builds(Entry, path, st.just("pipe")),
        st.builds(Entry, path, st.just("link"), st.sampled_from(["nowhere", ".", "..", "/dev/zero"])),
    )
    return st.lists(drawn, max_size=6, unique_by=lambda entry: entry.path)


def place(root: Path, drawn: list[Entry]) -> list[Entry]:
    """Write what was drawn, but what is there already or cannot be; return what was written."""
    written = []
    for entry in drawn:
        path = root / entry.path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if os.path.lexists(path):
                continue
            {
                "file": lambda path=path, entry=entry: path.write_bytes(entry.bytes),
                "folder": lambda path=path: path.mkdir(),
                "pipe": lambda path=path: os.mkfifo(path),
                "link": lambda path=path, entry=entry: path.symlink_to(entry.content),
            }[entry.kind]()
        except (FileExistsError, NotADirectoryError):  # another entry is a file where this one needs a folder
            continue
        written.append(entry)
    return written


def counted(meta: dict[str, Any]) -> set[str]:
    """Return all names that are left out, where tests let all be named."""
    return {name for tally in meta[LEFT_OUT].values() for name in tally["first"]}


def changed(meta: dict[str, Any]) -> dict[str, int]:
    return {reason: tally["count"] for reason, tally in meta[CHANGED].items()}


def not_counted(root: Path, meta: dict[str, Any]) -> list[str]:
    """Return the files of a folder that are not counted as left out, nor lie in a folder that is; links are followed once."""
    names = counted(meta)
    found = []
    for parent, folders, files in os.walk(root, followlinks=True):
        prefix = os.path.relpath(parent, root).replace(os.sep, "/")
        prefix = "" if prefix == "." else f"{prefix}/"
        folders[:] = [each for each in folders if shown(f"{prefix}{each}/") not in names]
        found += [f"{prefix}{each}" for each in files if shown(f"{prefix}{each}") not in names]
    return found


def is_named(message: str, drawn: Iterable[Entry]) -> bool:
    """Report whether an error names one of these, or the folder of a class that holds them."""
    paths = [entry.path for entry in drawn]
    parts = [part for path in paths for part in (path, path.rpartition("/")[2], "/".join(path.split("/")[:2]))]
    return any(shown(part) in message or part in message for part in parts)
