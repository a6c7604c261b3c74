"""Plants mistakes in ports of real models, checks each port, and prints what the check found: `python tests/ports/planted/plant.py --help`."""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomllib
import warm_sides

from steelyard.analysis import port_findings
from steelyard.errors import UserError
from steelyard.ports import check as ports_check
from steelyard.ports import definition

HERE = Path(__file__).parent
PAIRS, MISTAKES = HERE / "pairs", HERE / "mistakes.toml"
LIMIT_S = 900


@dataclass(frozen=True)
class Mistake:
    """One table of mistakes.toml. `edit`: Python statements that change `made`, what the side's build() returned.

    Statements that call build() themselves make the model; the usual call is left out then. `code`: statements at the end of the
    side's file, such as another loss(). Without a side, both are edited.
    modules: what must be named, one for each mistake. causes: for each of them the words that its cause must have.
    Without modules, the two models are equal.
    """

    name: str
    pair: str
    side: str = ""
    edit: str = ""
    code: str = ""
    modules: tuple[str, ...] = ()
    causes: tuple[tuple[str, ...], ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether nothing is wrong, so that the port must not be rejected."""
        return not self.modules


@dataclass(frozen=True)
class Score:
    """What a check made of one mistake."""

    mistake: Mistake
    rejected: bool
    module: bool
    cause: bool
    wrong: bool
    said: str
    commit: str


def mistakes() -> list[Mistake]:
    """Read all mistakes."""
    raw = tomllib.loads(MISTAKES.read_text(encoding="utf-8"))["mistake"]
    return [
        Mistake(
            **each | {"modules": tuple(each.get("modules", ())), "causes": tuple(map(tuple, each.get("causes", ())))}
        )
        for each in raw
    ]


def make(mistake: Mistake, environments: Path, folder: Path) -> None:
    """Write the port with the mistake planted."""
    shutil.copytree(PAIRS / mistake.pair, folder)
    port = folder / "port.toml"
    port.write_text(port.read_text(encoding="utf-8").replace("ENVIRONMENTS", str(environments)), encoding="utf-8")
    sides = tomllib.loads(port.read_text(encoding="utf-8"))["sides"]
    for name, side in sides.items():
        edit, code = (mistake.edit, mistake.code) if mistake.side in (name, "") else ("", "")
        lines = edit if "build(" in edit else f"made = build()\n{edit}"
        path = folder / side["file"]
        text = path.read_text(encoding="utf-8")
        path.write_text(
            f"{text}\n\ndef model():\n{textwrap.indent(lines, '    ')}\n    return made\n\n\n{code}", encoding="utf-8"
        )


def check(mistake: Mistake, environments: Path, results: Path, commit: str) -> None:
    """Check the port of one mistake, and write what steelyard says of it into the folder of results. `commit`: of the code."""
    with tempfile.TemporaryDirectory(prefix="planted-") as temporary:
        folder = Path(temporary) / mistake.pair
        make(mistake, environments, folder)
        port = definition.read(folder)
        began = time.monotonic()
        try:
            record = ports_check.check(
                port, {each.name: Path(each.env) for each in port.sides}, lambda _: None, LIMIT_S
            )
            found = port_findings.json_of(record) | {"code": port_findings.verdict(record).exit_code}
        except UserError as error:
            found = {"code": 2, "error": str(error)}
    found |= {"seconds": round(time.monotonic() - began, 1), "commit": commit}
    (results / f"{_file(mistake)}.json").write_text(json.dumps(found, default=str), encoding="utf-8")


def score(mistake: Mistake, results: Path) -> Score:
    """Compare what a check said with what it must say."""
    answer = json.loads((results / f"{_file(mistake)}.json").read_text(encoding="utf-8"))
    commit = answer["commit"]
    if "error" in answer:
        return Score(mistake, False, False, False, False, answer["error"], commit)
    places = _places(answer["record"])
    stated = [cause for _, _, cause in places if cause]
    explained = [
        any(_has(cause, words) for left, right, cause in places if _is_at(module, left, right))
        for module, words in zip(mistake.modules, mistake.causes, strict=True)
    ]
    wrong = [cause for cause in stated if not any(_has(cause, words) for words in mistake.causes)]
    first = [each for each in mistake.modules if places and _is_at(each, *places[0][:2])]
    named = all(any(_is_at(module, left, right) for left, right, _ in places) for module in mistake.modules)
    said = (
        "; ".join(f"{left} = {right}: {cause or 'no cause'}" for left, right, cause in places) or answer["sentences"][0]
    )
    return Score(mistake, answer["code"] == 1, bool(first) and named, all(explained), bool(wrong), said, commit)


def _places(record: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the places of both sides where they part, each with its cause, in the order in which they were found."""
    found = [*record["differences"], *(each for stage in record["training"] for each in stage["differences"])]
    places = [(each["left"], each["right"], each["cause"]) for each in found]
    weights = [each for each in record["mapped"] if not each["equal"]]
    return places + [(each["left"][0], each["right"][0], "other weights") for each in weights]


def _is_at(module: str, left: str, right: str) -> bool:
    return module in (left, right)


def _has(cause: str, words: tuple[str, ...]) -> bool:
    return bool(words) and all(word in cause for word in words)


def _file(mistake: Mistake) -> str:
    return f"{mistake.pair} {mistake.name}".replace("/", "-")


def table(scores: list[Score]) -> str:
    """Return one line for each mistake, and the totals."""
    lines = ["| pair | mistake | rejected | module | cause | wrong cause | commit |", "|---|---|---|---|---|---|---|"]
    for each in scores:
        ticks = ("yes" if value else "no" for value in (each.rejected, each.module, each.cause, each.wrong))
        if each.mistake.is_equal:
            ticks = iter(("yes" if each.rejected else "no", "-", "-", "yes" if each.wrong else "-"))
        lines.append(f"| {each.mistake.pair} | {each.mistake.name} | {' | '.join(ticks)} | {each.commit} |")
    planted = [each for each in scores if not each.mistake.is_equal]
    equal = [each for each in scores if each.mistake.is_equal]
    counts = [sum(getattr(each, name) for each in planted) for name in ("rejected", "module", "cause", "wrong")]
    lines.append(
        f"\n{len(planted)} planted: {counts[0]} rejected, {counts[1]} with the right module, {counts[2]} with the right cause, "
        f"{counts[3]} with a wrong cause. {len(equal)} equal: {sum(each.rejected for each in equal)} rejected."
    )
    return "\n".join(lines)


def main() -> None:
    """Check what is asked for, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environments", type=Path, help="a folder that environments.sh has made")
    parser.add_argument("results", type=Path, help="a folder for what each check printed")
    parser.add_argument("--only", default="", help="check only mistakes whose pair and name have this text")
    parser.add_argument("--table", action="store_true", help="check nothing: print the table of results that are there")
    parser.add_argument("--missing", action="store_true", help="check only what has no result yet")
    parser.add_argument("--commit", default="", help="the commit of the code, which the table shows")
    parser.add_argument("--verbose", action="store_true", help="print what each check said")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    asked = [each for each in mistakes() if options.only in _file(each)]
    ports_check.SideProcess = warm_sides.WarmSide
    scores = []
    for mistake in asked:
        there = (options.results / f"{_file(mistake)}.json").exists()
        if not options.table and not (options.missing and there):
            check(mistake, options.environments.absolute(), options.results, options.commit)
        elif not there:
            continue
        scores.append(score(mistake, options.results))
        if options.verbose:
            print(f"{_file(mistake)}: {scores[-1].said}\n", flush=True)
    print(table(scores))


if __name__ == "__main__":
    main()
