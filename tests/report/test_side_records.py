"""What was recorded beside the rounds is read from disk once, for however many quantities a run is looked at."""

from __future__ import annotations

from collections import Counter

from recorded import Script, view_of, write_run

from steelyard.plan.options import Options
from steelyard.profiles import graphs, recorded
from steelyard.published.gathering import gather
from steelyard.published.study_tables import StudyTable
from steelyard.results import communication

NAMES = ("pytorch", "tensorflow")
ARMS = {"mindspore": "pytorch", "pytorch": "tensorflow"}
HELD = tuple(
    StudyTable("S0:table-2-ratios", quantity, where={"device": "V100"}, sides=ARMS)
    for quantity in ("step time", "first step", "peak memory", "throughput")
)


def test_each_record_is_read_once_for_all_published_quantities(tmp_path, monkeypatch) -> None:
    wanted = Options(study="gpu-share", size="Q", frameworks=NAMES)
    folder = write_run(
        tmp_path,
        {name: Script(10.0, rounds=2) for name in NAMES},
        wanted,
        published=gather("mindspore-training", HELD, "C"),
    )
    read = Counter()
    for module in (recorded, graphs, communication):

        def counting(run, file_name, *number, module=module, original=module.read):
            read[(module.__name__, file_name, *number)] += 1
            return original(run, file_name, *number)

        monkeypatch.setattr(module, "read", counting)
    view = view_of(folder)
    assert len({table.quantity for table in view.published}) == len(HELD)
    assert len(read) > len(view.record.plan.variants), "nothing was read"
    assert set(read.values()) == {1}
