"""`steelyard cache list|prune`: the disk space of the cache, and the removal of what nothing uses."""

import argparse

from steelyard import cache
from steelyard.cli.commands import selection
from steelyard.files.paths import cache_folder


def execute(arguments: argparse.Namespace) -> int:
    """Print the disk space by kind, or remove what nothing uses."""
    runs = selection.runs_of(arguments)
    prune = arguments.action == "prune"
    found = cache.shares(cache.prune(runs) if prune else cache.entries(runs))
    if arguments.json:
        selection.print_json([share.to_dict() for share in found])
    elif prune:
        for share in found:
            if share.entries:
                print(f"Removed {share.entries} of {share.kind} ({_size(share.size_bytes)}).")
        print(f"Freed {_size(sum(share.size_bytes for share in found))}.")
    else:
        rows = [(each.kind, str(each.entries), _size(each.size_bytes), _size(each.unused_bytes)) for each in found]
        selection.print_table(rows, "kind", "entries", "size", "unused")
        print(f"\nIt is in {cache_folder()}\nTo remove what nothing uses: steelyard cache prune")
    return 0


def _size(count: int) -> str:
    return f"{count / 2**20:,.1f} MiB"
