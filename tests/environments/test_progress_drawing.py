"""Progress reaches a terminal as bars and anything else as plain lines."""

import io

from steelyard.environments.progress import Bars, Lines, Progress, drawing, watch_progress


class Screen:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def progress(self, label: str, done: float, total: float, note: str = "") -> None:
        self.told.append((label, done, total, note))


def test_a_pipe_gets_one_plain_line_per_stage() -> None:
    stream = io.StringIO()
    with drawing(stream) as lines:
        assert isinstance(lines, Lines)
        for done in (0, 1_000_000, 2_000_000):
            lines.report(Progress("tiny", "downloading", done, 2_000_000))
        lines.report(Progress("tiny", "ready"))
    told = [line.split("] ")[1] for line in stream.getvalue().splitlines()]
    assert told == ["tiny: downloading 0 of 2 MB", "tiny: ready"]


def test_a_terminal_gets_a_bar_per_environment_with_its_size() -> None:
    from rich.console import Console

    stream = io.StringIO()
    with Bars(Console(file=stream, force_terminal=True, width=100)) as bars:
        bars.report(Progress("tiny", "downloading", 63_000_000, 131_000_000))
        bars.report(Progress("other", "verifying"))
        bars.report(Progress("other", "failed", sentence="no [network]"))
    assert "downloading 63 of 131 MB" in stream.getvalue()
    assert "failed: no [network]" in stream.getvalue()


def test_a_screen_hears_each_change_once_and_failures_from_others() -> None:
    screen = Screen()
    with watch_progress(screen) as report:
        report(Progress("tiny", "creating", sentence="uv is missing"))
        report(Progress("tiny", "creating", sentence="uv is missing"))
        report(Progress("tiny", "downloading", 1, 2))
        report(Progress("tiny", "failed", sentence="no"))
    assert screen.told == [
        ("tiny", 0, 0, "creating: uv is missing"),
        ("tiny", 1, 2, "downloading 0 of 0 MB"),
    ]
