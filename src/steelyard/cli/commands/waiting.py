"""How long a command waits for others on this machine: `--wait MINUTES` and `--no-wait`."""

import argparse
import math

from steelyard.errors import UserError


def limit_s(arguments: argparse.Namespace) -> float:
    """Return how long a command waits for its turn, seconds. UserError: its arguments contradict each other."""
    if arguments.no_wait and arguments.wait_minutes is not None:
        raise UserError("--wait and --no-wait contradict each other. Remove one of them.")
    given = "--no-wait" if arguments.no_wait else "" if arguments.wait_minutes is None else "--wait"
    if given and not getattr(arguments, "guard", True):
        raise UserError(
            f"With --no-guard a run waits for no other command, so it takes no {given}. Remove one of them."
        )
    if given and getattr(arguments, "on", "local") != "local":
        raise UserError(
            f"{given} is about this machine; the nodes of a cluster are waited for one by one. Leave out {given}."
        )
    if arguments.no_wait:
        return 0.0
    return math.inf if arguments.wait_minutes is None else 60 * arguments.wait_minutes
