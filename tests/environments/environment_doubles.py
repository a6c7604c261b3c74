"""What tests of environments control and read: a stand-in for uv, recorded progress events, and where packages are."""

from dataclasses import dataclass
from pathlib import Path

from steelyard.environments.folders import site_folders
from steelyard.environments.progress import Progress


@dataclass
class FakeUv:
    """The stand-in for uv, see `fake_uv.py`."""

    folder: Path

    def behave(self, behaviour: str) -> None:
        (self.folder / "behaviour").write_text(behaviour)

    def count(self, words: str) -> int:
        """How often it was called with a command that begins with these words."""
        path = self.folder / "calls"
        return sum(line.startswith(words) for line in path.read_text().splitlines()) if path.exists() else 0


@dataclass
class Events:
    """Collects progress events."""

    events: list[Progress]

    def report(self, event: Progress) -> None:
        self.events.append(event)

    @property
    def stages(self) -> list[str]:
        return [event.stage for event in self.events]

    @property
    def sentences(self) -> str:
        return " ".join(event.sentence for event in self.events)


def site(folder: Path) -> Path:
    """Return the package folder of an environment."""
    return site_folders(folder)[0]
