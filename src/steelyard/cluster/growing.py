"""The growing files of a run on a node, as pieces for the record on the machine of the run.

Events are sent last, so that the record never announces more than its binary files contain, whenever the connection ends.
"""

from pathlib import Path

from steelyard.cluster import files
from steelyard.cluster.files import Piece
from steelyard_worker.job_kinds import KINDS
from steelyard_worker.protocol import EVENTS

# The folders of a run that are sent: those with records of processes. Only the node needs the others.
BROUGHT = tuple(kind.folder for kind in KINDS.values() if kind.folder)
# Bytes of one reply.
MOST_BYTES = 8 * 2**20


class Growing:
    """Follows the folders of the present work. `known`: path -> bytes that were sent."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._known: dict[str, int] = {}
        self._before: set[Path] = set()

    def begin(self) -> None:
        """Treat the folders that exist now as complete; only later ones are followed."""
        self._before = set(self._folders())
        self._known = {}

    def new_folders(self) -> list[Path]:
        """Return the folders of processes that have appeared since `begin`."""
        return [folder for folder in self._folders() if folder not in self._before]

    def pieces(self) -> tuple[list[Piece], bool]:
        """Return the additions since the last call, at most `MOST_BYTES`, and whether these are all."""
        found: list[Piece] = []
        room = MOST_BYTES
        for folder in self.new_folders():
            # Sizes of events are read first, so that the other files cover at least the data that the events announce.
            names = dict(files.below(self._run, folder))
            events = {name: path.stat().st_size for name, path in names.items() if path.name == EVENTS}
            for name in sorted(names, key=lambda each: (each in events, each.count("/") < 3, each)):
                sent = self._known.get(name, -1)
                size = events.get(name, names[name].stat().st_size)
                while sent < size:
                    if room <= 0:
                        return found, False
                    piece = _read(self._run, name, max(sent, 0), min(size, max(sent, 0) + files.PIECE_BYTES))
                    found.append(piece)
                    room -= max(1, len(piece.data))
                    sent = max(sent, 0) + len(piece.data)
                    self._known[name] = sent
                    if not piece.data:
                        break
        return found, True

    def _folders(self) -> list[Path]:
        return [folder for name in BROUGHT for folder in sorted((self._run / name).glob("*/"))]


def _read(root: Path, name: str, begin: int, end: int) -> Piece:
    with (root / name).open("rb") as file:
        file.seek(begin)
        return Piece(name, begin, file.read(end - begin))
