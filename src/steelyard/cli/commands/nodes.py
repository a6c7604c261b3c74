"""`steelyard nodes`: the nodes of a cluster, and the choice of nodes for other commands."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from steelyard.cli.commands import selection
from steelyard.cluster import engine, facts, nodes
from steelyard.cluster.engine import Member
from steelyard.cluster.nodes import Choice, Node
from steelyard.errors import UserError

LOCAL = "local"
MARKS = {True: "[green]fit[/]", False: "[red]left out[/]"}


@contextmanager
def nodes_of(arguments: argparse.Namespace, fingerprint: str = "") -> Iterator[Choice | None]:
    """Join the cluster that `--on` names, and yield the nodes that measure; None: this machine measures.

    `fingerprint`: of the machines on which a run to be continued was measured.
    """
    if arguments.on == LOCAL:
        if arguments.nodes:
            raise UserError("--nodes chooses nodes of a cluster. Name the cluster with --on, or leave out --nodes.")
        yield None
        return
    with engine.joined(arguments.on):
        yield nodes.choose(nodes.survey(), arguments.nodes or fingerprint)


def execute(arguments: argparse.Namespace) -> int:
    """Print the nodes; the exit code is 1 if none can measure."""
    if arguments.on == LOCAL:
        found = [nodes.judged(Member("", "this machine", ""), {"facts": facts.examine()})]
    else:
        with engine.joined(arguments.on):
            found = nodes.survey()
    if arguments.json:
        selection.print_json([_plain(node) for node in found])
    else:
        _print(found)
    return int(all(node.why_not for node in found))


def _plain(node: Node) -> dict[str, Any]:
    known = asdict(node.facts) if node.facts else None
    return {"name": node.name, "address": node.member.address, "why_not": node.why_not, "facts": known}


def _print(found: list[Node]) -> None:
    from rich.markup import escape

    rows = [(f"[bold]{escape(node.name)}[/]", MARKS[not node.why_not], "\n".join(_lines(node))) for node in found]
    selection.print_table(rows, "", "", "")


def _lines(node: Node) -> Iterator[str]:
    """Yield the lines about a node, with rich's markup."""
    from rich.markup import escape

    if node.why_not:
        yield escape(f"{node.why_not[0].upper()}{node.why_not[1:].rstrip('.')}.")
    known = node.facts
    if known is None:
        return
    machine = known.machine
    accelerators = ", ".join([*machine.gpus, *machine.npus]) or "no accelerator"
    cores = "1 core" if machine.cores_usable == 1 else f"{machine.cores_usable} cores"
    yield escape(f"{machine.cpu_model}, {cores}, {machine.memory_bytes / 2**30:.0f} GiB, {accelerators}")
    measuring = f"{known.measuring} measures there now" if known.measuring else "nothing is measured there now"
    yield escape(f"fingerprint {node.fingerprint}, load {known.load:.1f}, {measuring}")
    for each in known.findings:
        if each.state == "warn":
            yield f"[dim]{escape(f'{each.name}: {each.sentence} {each.advice}')}[/]"
