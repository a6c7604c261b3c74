"""The layout of LibriSpeech: spectrograms, letters, samples left out, error messages."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
from scipy import signal

from steelyard.errors import UserError
from steelyard.inputs import case_inputs
from steelyard.inputs.data import DataRequest, prepare, speech
from steelyard.inputs.data.catalogue import find
from steelyard.inputs.data.options import parse_options
from steelyard.statistics import metrics
from steelyard_worker.tensors import read

SMALL = {"frames": 120, "transcript": 20}


def write_utterance(
    root: Path, split: str, name: str, text: str | None, samples: int = 16_000, rate: int = 16_000, seed: int = 0
) -> Path:
    """Write one recording of noise, and its line of the chapter's transcripts."""
    speaker, chapter, _ = name.split("-")
    folder = root / split / speaker / chapter
    folder.mkdir(parents=True, exist_ok=True)
    noise = 0.1 * np.random.default_rng(seed).standard_normal(samples)
    soundfile.write(folder / f"{name}.flac", noise, rate)
    with (folder / f"{speaker}-{chapter}.trans.txt").open("a", encoding="utf-8") as file:
        file.write(f"{name} {text}\n" if text is not None else "")
    return folder / f"{name}.flac"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a small LibriSpeech: speaker names whose numeric and alphabetical orders differ, two training utterances too long."""
    folder = tmp_path / "LibriSpeech"
    write_utterance(folder, "train-clean-100", "103-2-0000", "IT'S THREE", seed=1)
    write_utterance(folder, "train-clean-100", "26-9-0001", "TWO", 8_000, seed=2)
    write_utterance(folder, "train-clean-100", "26-9-0000", "ONE", 19_360, seed=3)
    write_utterance(folder, "train-clean-100", "26-9-0002", "LONG", 19_520)
    write_utterance(folder, "train-clean-100", "26-9-0003", "TWENTY ONE LETTERS AA")
    write_utterance(folder, "test-clean", "7-1-0000", "FOUR", seed=4)
    return folder


def prepared(root: Path, **options: object):
    return prepare(DataRequest("librispeech", root, SMALL | options))


def test_spectrogram_equals_scipys_transform(root: Path):
    samples, _ = soundfile.read(root / "test-clean/7/1/7-1-0000.flac", dtype="float32")
    transform = signal.ShortTimeFFT(np.hamming(320), 160, 16_000, fft_mode="onesided")
    # Windows that lie wholly inside: SciPy counts slices by their middle.
    expected = np.log1p(np.abs(transform.stft(samples.astype(float), p0=1, p1=100)))
    expected = (expected - expected.mean()) / expected.std()
    found = read(prepared(root).folder)
    assert found["test/frames"].tolist() == [99]
    np.testing.assert_allclose(found["test/spectrogram"][0, 0, :, :99], expected, atol=2e-6)
    assert not found["test/spectrogram"][0, 0, :, 99:].any()


def test_utterances_are_sorted_by_the_numbers_in_their_names(root: Path):
    found = read(prepared(root).folder)
    spelled = ["".join(metrics.LETTERS[code] for code in row if code) for row in found["train/transcript"]]
    assert spelled == ["ONE", "TWO", "IT'S THREE"]
    assert found["train/transcript_length"].tolist() == [3, 3, 10]
    assert found["train/frames"].tolist() == [120, 49, 99]
    assert found["position/train"].tolist() == [0, 1, 4]


def test_arrays_have_the_shapes_and_dtypes_of_the_network_inputs(root: Path):
    found = read(prepared(root).folder)
    assert {name: (array.shape, array.dtype.name) for name, array in found.items() if name.startswith("train/")} == {
        "train/spectrogram": ((3, 1, 161, 120), "float32"),
        "train/frames": ((3,), "int32"),
        "train/transcript": ((3, 20), "int32"),
        "train/transcript_length": ((3,), "int32"),
    }


def test_samples_longer_than_the_arrays_are_left_out_counted_and_reported(root: Path):
    messages = []
    found = prepare(DataRequest("librispeech", root, SMALL), lambda progress: messages.append(progress.sentence))
    assert (found.meta["train_held"], found.meta["train_dropped"], found.meta["train_count"]) == (5, 2, 3)
    assert found.meta["test_dropped"] == 0
    assert "Left out 2 of 5 train utterances: longer than 120 frames or 20 letters" in messages


def test_data_without_a_checksum_is_described_as_the_users_own(root: Path):
    found = prepared(root)
    assert case_inputs._origin(found.meta) == (
        "your data in the layout of LibriSpeech (unpacked folders): 3 training and 1 test samples; no checksum shows that it is "
        "the official data. Left out: train utterances longer than 120 frames or 20 letters: 2 (26-9-0002.flac, 26-9-0003.flac)."
    )


def test_another_window_size_changes_bins_and_frames(root: Path):
    found = read(prepared(root, window=80, hop=320).folder)
    assert found["train/spectrogram"].shape == (4, 1, 41, 120)
    assert found["train/frames"].tolist() == [61, 25, 61, 50]


def test_limits_select_the_first_utterances(root: Path):
    assert read(prepared(root, train_limit=2).folder)["position/train"].tolist() == [0, 1]


def test_a_second_call_reuses_the_arrays_unless_a_file_changed(root: Path):
    first = prepared(root)
    stamp = (first.folder / "tensors.bin").stat().st_mtime_ns
    assert prepared(root).folder == first.folder
    assert (first.folder / "tensors.bin").stat().st_mtime_ns == stamp
    write_utterance(root, "test-clean", "7-1-0001", "FIVE")
    assert prepared(root).folder != first.folder


def test_an_unused_split_does_not_change_the_cache_key(root: Path):
    first = prepared(root)
    write_utterance(root, "dev-clean", "8-1-0000", "SIX")
    assert prepared(root).folder == first.folder


def test_a_silent_utterance_has_a_spectrogram_of_zeros():
    assert not speech.spectrogram(np.zeros(1600, np.float32), 320, 160).any()


HINT = "To see which files are read: steelyard list data librispeech"


def error_of(root: Path, **options: object) -> str:
    with pytest.raises(UserError) as found:
        prepared(root, **options)
    cache = list((root.parent / "cache").rglob("tensors.bin"))
    assert not cache, "something half-prepared was left behind"
    return str(found.value)


def test_an_utterance_without_a_transcript_is_reported(root: Path):
    path = write_utterance(root, "test-clean", "7-1-0001", None)
    assert (
        error_of(root)
        == f"{path} has no transcript in {path.with_name('7-1.trans.txt')}; add its line, or remove the recording. {HINT}"
    )


def test_a_chapter_without_transcripts_is_reported(root: Path):
    (root / "test-clean/7/1/7-1.trans.txt").unlink()
    assert (
        error_of(root)
        == f"{root / 'test-clean/7/1'} has recordings, but no transcripts (7-1.trans.txt); put that file there. {HINT}"
    )


def test_a_file_that_is_not_a_recording_is_reported(root: Path):
    path = root / "test-clean/7/1/7-1-0000.flac"
    path.write_bytes(b"RIFF")
    assert error_of(root).startswith(f"{path} is damaged or truncated (")


def test_a_truncated_recording_is_reported(root: Path):
    path = root / "test-clean/7/1/7-1-0000.flac"
    path.write_bytes(path.read_bytes()[:9000])
    assert error_of(root).startswith(f"{path} is damaged or truncated (")


def test_a_recording_with_another_sampling_rate_is_reported(root: Path):
    path = write_utterance(root, "test-clean", "7-1-0001", "FIVE", rate=22_050)
    assert error_of(root) == f"{path} has 1 channel(s) at 22050 Hz; convert it to one channel at 16000 Hz."


def test_a_recording_shorter_than_a_window_is_reported(root: Path):
    path = write_utterance(root, "test-clean", "7-1-0001", "FIVE", samples=319)
    assert error_of(root) == f"{path} is shorter than one window of 320 samples; replace it, or remove it."


def test_an_empty_transcript_is_reported(root: Path):
    path = write_utterance(root, "test-clean", "7-1-0001", "")
    assert error_of(root) == f"The transcript of {path} is empty; add its text, or remove the recording."


def test_an_unknown_character_is_reported(root: Path):
    path = write_utterance(root, "test-clean", "7-1-0001", "FÜNF")
    assert error_of(root).startswith(f"The transcript of {path} has the character 'Ü'; only A to Z")


def test_transcripts_in_another_encoding_are_reported(root: Path):
    path = root / "test-clean/7/1/7-1.trans.txt"
    path.write_bytes("7-1-0000 FÜNF\n".encode("latin-1"))
    assert error_of(root) == f"{path} is not UTF-8 text (byte 10); convert it to UTF-8."


def test_an_empty_split_is_reported(root: Path):
    shutil.rmtree(root / "test-clean/7")
    assert error_of(root).startswith(f"{root / 'test-clean'} holds no utterances; put SPEAKER/CHAPTER/*.flac there")


def test_a_split_with_only_long_utterances_is_reported(root: Path):
    assert error_of(root, frames=40).startswith(f"{root} holds no train utterance of at most 40 frames and 20 letters")


def test_a_folder_without_the_training_split_is_reported(root: Path):
    shutil.rmtree(root / "train-clean-100")
    assert error_of(root).startswith(f"{root} does not hold 'train-clean-100/<speaker>/<chapter>/<utterance>.flac'")


def test_without_a_folder_the_error_names_the_official_source():
    with pytest.raises(
        UserError,
        match=r"is not downloaded by steelyard: put 'LibriSpeech' \(https://www.openslr.org/12\) in a folder and name",
    ):
        prepare(DataRequest("librispeech"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"frames": 0}, "frames must be at least 1."),
        ({"window": 81}, "window must be an even number of samples."),
        ({"train_split": "../else"}, "a split is the name of one folder."),
        ({"train_limit": -1}, "train_limit must be at least 0."),
        ({"seed": 1}, "has no option 'seed'."),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, object], sentence: str):
    with pytest.raises(UserError, match=sentence):
        parse_options(find("librispeech"), options)


def test_real_recordings_are_prepared(real_data: Path):
    splits = {"train_split": "test-clean", "test_split": "dev-clean"}
    found = prepare(DataRequest("librispeech", real_data, splits))
    arrays = read(found.folder)
    assert arrays["train/frames"].tolist() == [1042, 326, 207, 540]
    assert arrays["train/transcript_length"].tolist() == [158, 42, 23, 76]
    spelled = "".join(metrics.LETTERS[code] for code in arrays["train/transcript"][1] if code)
    assert spelled == "STUFF IT INTO YOU HIS BELLY COUNSELLED HIM"
    for row, frames in zip(arrays["test/spectrogram"], arrays["test/frames"], strict=True):
        assert abs(row[..., :frames].mean()) < 1e-4
        assert abs(row[..., :frames].std() - 1) < 1e-4
        assert not row[..., frames:].any()


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    """Return five clips of noise with their metadata."""
    folder = tmp_path / "clips"
    (folder / "flac").mkdir(parents=True)
    words = ("one", "two", "three", "four", "five")
    for seed, word in enumerate(words):
        noise = 0.1 * np.random.default_rng(seed).standard_normal(16_000)
        soundfile.write(folder / "flac" / f"{word}.flac", noise, 16_000)
    (folder / "metadata.csv").write_text(
        "".join(f"{word}|{word}.|{word.upper()}\n" for word in words), encoding="utf-8"
    )
    return folder


def test_every_fifth_clip_of_a_table_is_for_testing(clips: Path):
    found = read(prepare(DataRequest("clips-16k", clips, SMALL)).folder)
    spelled = ["".join(metrics.LETTERS[code] for code in row if code) for row in found["train/transcript"]]
    assert spelled == ["ONE", "TWO", "THREE", "FOUR"]
    assert (found["test/transcript_length"].tolist(), found["position/test"].tolist()) == ([4], [4])


def test_a_missing_clip_of_the_table_is_reported(clips: Path):
    (clips / "flac/two.flac").unlink()
    with pytest.raises(UserError, match=r"metadata\.csv, line 2, lists 'two', but .*flac/two\.flac is missing"):
        prepare(DataRequest("clips-16k", clips, SMALL))


def test_fewer_than_five_clips_are_rejected(clips: Path):
    (clips / "metadata.csv").write_text("one|One.|ONE\n", encoding="utf-8")
    for path in (clips / "flac").iterdir():
        if path.stem != "one":
            path.unlink()
    with pytest.raises(UserError, match="lists 1 clips; at least 5 are needed"):
        prepare(DataRequest("clips-16k", clips, SMALL))


def test_real_clips_are_prepared(real_data: Path):
    found = prepare(DataRequest("clips-16k", real_data / "allison-16k", {"frames": 560, "transcript": 80}))
    assert (
        found.meta["train_count"] + found.meta["test_count"] + found.meta["train_dropped"] + found.meta["test_dropped"]
        == 337
    )
