"""What tests of environments set up and look at: a stand-in for uv, and a listener."""

from dataclasses import dataclass
from pathlib import Path

from steelyard.environments.progress import Progress


@dataclass
class FakeUv:
    """The stand-in: its mood can be set, its askings read."""

    folder: Path

    def be(self, mood: str) -> None:
        (self.folder / "mood").write_text(mood)

    def asked(self, words: str) -> int:
        """How often a command that begins with these words came."""
        path = self.folder / "asked"
        return sum(line.startswith(words) for line in path.read_text().splitlines()) if path.exists() else 0


@dataclass
class Heard:
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
