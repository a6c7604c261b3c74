"""Progress is shown once per change, and downloads are counted."""

import pytest

from steelyard.environments.progress import Downloads, Progress, described, shown_on


class Screen:
    """Records what it shows."""

    def __init__(self) -> None:
        self.shown: list[object] = []

    def progress(self, label: str, done: float, total: float, note: str = "") -> None:
        self.shown.append((label, done, total, note))


@pytest.mark.parametrize("failures", [True, False])
def test_a_screen_shows_each_change_and_failures_only_if_requested(failures: bool) -> None:
    screen = Screen()
    report = shown_on(screen, failures)  # type: ignore[arg-type]
    report(Progress("tiny", "creating", sentence="a file changed"))
    report(Progress("tiny", "downloading", 1, 2))
    report(Progress("tiny", "failed", sentence="no"))
    assert screen.shown == [
        ("tiny", 0, 0, "creating: a file changed"),
        ("tiny", 1, 2, "downloading 0 of 0 MB"),
        *([("tiny", 0, 0, "failed: no")] if failures else []),
    ]


def test_downloads_have_their_sizes_in_megabytes() -> None:
    assert described(Progress("tiny", "downloading", 63_000_000, 131_000_000)) == "downloading 63 of 131 MB"


def test_a_download_counts_as_done_when_uv_reports_its_end() -> None:
    reported: list[tuple[str, int, int]] = []
    downloads = Downloads(lambda *event: reported.append(event))
    for line in (
        "Downloading numpy (16.0MiB)",
        "Downloading small (512.0KiB)",
        " Downloaded small",
        "Prepared 2 packages in 3ms",
    ):
        downloads.listen(line)
    total = 16 * 2**20 + 2**19
    assert reported == [
        ("downloading", 0, 16 * 2**20),
        ("downloading", 0, total),
        ("downloading", 2**19, total),
        ("installing", 0, 0),
    ]
