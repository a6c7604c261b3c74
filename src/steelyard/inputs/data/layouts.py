"""The layouts of data sets: which files a folder or an archive holds, as checked by the readers and shown to users."""

import re
from dataclasses import dataclass

from steelyard.inputs.data.damage import DOWNLOAD, REPLACE

# A part of a path that has any name, and an example of one: {class:n01440764}.
PLACE = re.compile(r"\{([a-z]+):([^}]*)\}")
ANY = "\0"  # is in no name of a file
ARCHIVES = (".tar.gz", ".tgz", ".zip")
UNKNOWN = "layout"
"""The verification of data without a known checksum: only its layout is checked, as for a user's own data."""


@dataclass(frozen=True)
class Part:
    """One kind of file in a folder or an archive: where it is, its split (training, test or all), and its format in words.

    path: relative, with places such as {class:n01440764} for any name; "a|b" for either of two files.
    """

    path: str
    split: str
    format: str

    @property
    def forms(self) -> list[str]:
        """The path as shown to users, with <class> for any name; two where there are two forms."""
        return PLACE.sub(r"<\1>", self.path).split("|")

    @property
    def example(self) -> str:
        """An example of the path, of the first form where there are two."""
        return example_of(self.path.partition("|")[0])


@dataclass(frozen=True)
class Layout:
    """One official form of a data set: a single file, an archive with `parts`, or an unpacked folder with `parts`.

    path: file or folder, relative; places as in `Part`; "." is the folder itself. format: of a single file, in words. bytes,
    algorithm, digest: size and published checksum; the digest is empty where none is published for the whole. unpacked: the most
    bytes that a compressed file may unpack to; 0: it is not compressed. url: empty where this form is not downloaded.
    """

    name: str
    path: str
    parts: tuple[Part, ...] = ()
    format: str = ""
    bytes: int = 0
    algorithm: str = ""
    digest: str = ""
    unpacked: int = 0
    url: str = ""

    @property
    def is_folder(self) -> bool:
        """Whether this form is an unpacked folder."""
        return bool(self.parts) and not self.path.endswith(ARCHIVES)

    @property
    def files(self) -> re.Pattern[str]:
        """The pattern of the files of an unpacked folder: those of its parts, with any name in every place."""
        forms = [form for part in self.parts for form in part.path.split("|")]
        return re.compile("|".join(f"^{re.escape(PLACE.sub(ANY, form)).replace(ANY, '[^/]+')}$" for form in forms))

    @property
    def remedy(self) -> str:
        """What to do about a damaged file: only an official one, whose checksum is known, can be downloaded again."""
        return DOWNLOAD if self.digest else REPLACE

    @property
    def identity(self) -> str:
        """The name of the content if its checksum is correct: the same wherever the file is stored."""
        return f"{self.algorithm}:{self.digest}"


def example_of(path: str) -> str:
    """Return an example of a path with places."""
    return PLACE.sub(r"\2", path)


def pattern_of(path: str) -> str:
    """Return the pattern of file names, with *, that a path with places means."""
    return PLACE.sub("*", path)
