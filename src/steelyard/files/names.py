"""Names that users give to studies, workloads and presets. They become parts of file names and of options."""

import re

LONGEST = 40
NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST - 1}}}")


def flaw(name: str, kind: str, taken: bool = False) -> str:
    """Return why a name cannot be that of a study, workload or preset, in one line; empty if it can.

    A good name is a part of a file name on every system, and is read on a command line as it is. `taken`: the name is that of
    another one, which it would hide.
    """
    shown = ascii(name)
    if len(shown) > 2 * LONGEST:
        shown = f"{shown[: 2 * LONGEST]}...'"
    if not NAME.fullmatch(name):
        return (
            f"{shown} is not a valid name of a {kind}. Use at most {LONGEST} letters from A to Z, digits, '.', '_' and '-', "
            "starting with a letter or a digit."
        )
    return f"There is another {kind} named {shown}, which this one would hide. Choose another name." if taken else ""
