"""Remove what must not be published with a page: paths of home folders, and the name of the user."""

import getpass
import re
from pathlib import Path

# Home folders of any user, as the record may come from another machine: Linux, macOS, Windows.
HOMES = re.compile(
    r"(?<![\w.])(/home/[^/\s\"'<>:,;]+|/Users/[^/\s\"'<>:,;]+|/root(?![\w-]|\.\w)|[A-Za-z]:\\Users\\[^\\\s\"'<>:,;]+)"
)
PATH = re.compile(r"(?:~|[A-Za-z]:)?[/\\][^\s\"'<>]+")


def without_names(text: str) -> str:
    """Return a text with `~` for every home folder, and `user` for the name of the present user in any other path."""
    if "/" not in text and "\\" not in text:  # no path: most texts of a page are numbers and names
        return text
    homes = {str(Path.home()), str(Path.home().resolve())} - {"/"}
    for home in sorted(homes, key=len, reverse=True):
        text = re.sub(rf"{re.escape(home)}(?![\w-]|\.\w)", "~", text)
    text = HOMES.sub("~", text)
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without an entry in the system's list
        return text
    name = re.compile(rf"(?<![A-Za-z0-9]){re.escape(user)}(?![A-Za-z0-9])")
    return PATH.sub(lambda path: name.sub("user", path[0]), text)
