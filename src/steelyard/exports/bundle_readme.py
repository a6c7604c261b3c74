"""The README of a bundle: what was measured, how to repeat it, and the hashes of its certificates."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from steelyard.exports import markdown, verdict_texts
from steelyard.exports.markdown import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.analysis.model import View

REPEAT = """\
With steelyard {version} (method {method}), on a machine of your own:

```
{command}
```

`PATH` stands for a file or a folder of the person who measured. Times can be compared only on the same kind of machine;
ratios may differ on another."""
READ = """\
`steelyard report FOLDER`, with the name of this folder, prints the tables and writes the page of this run, with all plots. It
reads the files here and nothing else, and measures nothing. `sha256sum --check SHA256SUMS` compares every file with its hash.

This is the record of the run without names of hosts and users, paths, environment variables, traces and logs."""
CERTIFICATES = """\
Each says that a contender computes the same function as the reference, and how that was shown. The hash is that of the
certificate in `certificates.json`, as JSON with sorted names and without blanks."""


def text(view: View, name: str) -> str:
    """Return the README of the bundle that a view was read from. `name`: that of the run."""
    known = view.record
    texts = replace(verdict_texts.of_view(replace(view, name=name)), command="")
    command = markdown.one_line(known.command) or "steelyard run"
    parts = [
        f"# Results of steelyard: {escaped(name)}",
        markdown.of_texts(texts).strip(),
        "## Repeat it",
        REPEAT.format(version=escaped(known.steelyard), method=known.method, command=command.replace("```", "")),
        "## Read it",
        READ,
        "## Certificates",
        CERTIFICATES,
        "\n".join(["| contender | certificate | key | SHA-256 |", "|---|---|---|---|", *_certificates(view)]),
    ]
    return "\n\n".join(parts) + "\n"


def _certificates(view: View) -> Iterator[str]:
    for comparison in view.comparisons:
        for contender in comparison.contenders:
            proof = contender.proof
            name = f"{comparison.group}/{contender.variant}"
            key = str(proof.details.get("key", ""))
            yield f"| {escaped(name)} | {proof.state} | {escaped(key)} | {digest(proof.details) if proof.details else ''} |"


def digest(value: Any) -> str:
    """Return the SHA-256 of a value as JSON with sorted names and without blanks."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
