"""The examples of docs/api.md print what the page says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
BLOCK = re.compile(r"^```(?P<language>[\w -]+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_example_prints_what_the_page_says(recorded, tmp_path):
    recorded("before-and-after")
    recorded("training")
    blocks = [(each["language"], each["text"]) for each in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]
    names: dict[str, object] = {}
    compared = 0
    for place, (language, text) in enumerate(blocks):
        if language != "python":
            compile(text, PAGE.name, "exec") if language == "python no-run" else None
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(text.replace('"latest"', '"training"'), PAGE.name, "exec"), names)
        following, expected = blocks[place + 1]
        assert following == "text"
        assert printed.getvalue() == expected
        compared += 1
    assert compared == 7
