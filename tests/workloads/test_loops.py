"""What networks read in loops over time, counted from their tensors."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import pytest

from steelyard.catalog import workloads
from steelyard.catalog.frameworks import WORKER

if TYPE_CHECKING:
    from steelyard_worker.network import Network

LSTM = {"lstm.*.w_hh": 80}
# Tensors and how often a loop reads each. The encoder of GNMT has two directions in its first layer; the target's last word is no
# input. Deep Speech 2 has half as many frames after its first convolution as the spectrogram. The inputs of Tacotron 2's decoder
# are frames that are known before, what is attended to, and the output of the first cell.
READ = {
    "lstm-imdb:reviews": LSTM,
    "lstm-imdb:tiny-bidirectional": {"lstm.*.w_hh": 12},
    "gnmt:wmt16": {"encoder.*.w_hh": 50, "decoder.*.w_hh": 49},
    "deepspeech2:librispeech": {"rnn*.w_hh": 635},
    "tacotron2:ljspeech": {"encoder.lstm.*.w_hh": 100, "decoder.lstm*.w_hh": 566, "decoder.lstm2.w_ih": 566},
    "bert:wikitext": {},
    "resnet18:digits": {},
}


def network(name: str) -> Network:
    workload, preset = name.split(":")
    return workloads.described(WORKER / "workloads" / workload, workloads.find()[workload].preset(preset).sizes)


@pytest.mark.parametrize("name", READ)
def test_weights_inside_loops_count_once_for_every_step(name: str) -> None:
    found = network(name)
    expected = sum(
        steps * each.count
        for pattern, steps in READ[name].items()
        for each in found.parameters
        if fnmatchcase(each.name, pattern)
    )
    if name == "tacotron2:ljspeech":  # the columns of the first cell's input that read what is attended to
        expected += 566 * 4 * 1024 * 512
    assert found.loop_reads == expected
    assert bool(found.loop_reads) is bool(READ[name])
