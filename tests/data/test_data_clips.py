"""The layout of LJSpeech: symbols, mel spectrograms, splits, samples left out, error messages."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
from scipy import signal

from steelyard.errors import UserError
from steelyard.inputs import case_inputs
from steelyard.inputs.data import DataRequest, mel, prepare, symbols
from steelyard.inputs.data.catalogue import find
from steelyard.inputs.data.options import parse_options
from steelyard_worker.tensors import read

HINT = "To see which files are read: steelyard list data ljspeech"
SMALL = {"characters": 12, "frames": 40, "mels": 16}


def write_clip(
    root: Path, name: str, line: str | None, samples: int = 8_000, rate: int = 22_050, seed: int = 0
) -> Path:
    """Write one recording of noise, and its line of the metadata."""
    (root / "wavs").mkdir(parents=True, exist_ok=True)
    noise = 0.1 * np.random.default_rng(seed).standard_normal(samples)
    soundfile.write(root / "wavs" / f"{name}.wav", noise, rate)
    with (root / "metadata.csv").open("a", encoding="utf-8") as file:
        file.write(f"{name}|{line}\n" if line is not None else "")
    return root / "wavs" / f"{name}.wav"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a small LJSpeech of ten clips that fit, one with too long a text and one with too many frames."""
    folder = tmp_path / "LJSpeech-1.1"
    for number in range(10):
        write_clip(
            folder,
            f"LJ001-{number:04}",
            f"No. {number}|Number {'abcdefghij'[number]}",
            6_000 + 300 * number,
            seed=number,
        )
    write_clip(folder, "LJ001-0010", "13 letters ab|thirteen abcd")
    write_clip(folder, "LJ001-0011", "long|long", 40 * 256)
    return folder


def prepared(root: Path, **options: object):
    return prepare(DataRequest("ljspeech", root, SMALL | options))


def spelled(ids: np.ndarray) -> str:
    return "".join((symbols.PADDING_AND_PUNCTUATION + symbols.LETTERS)[each] for each in ids if each)


def test_there_are_148_symbols_and_letters_follow_the_punctuation():
    assert symbols.COUNT == 148
    assert symbols.encode("-!'(),.:;? az").tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 38, 63]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("In  being\tComparatively modern.", "in being comparatively modern."),
        ("Caf\u00e9s \u2014 \u2018old\u2019 \u00c6sop", "cafes - 'old' aesop"),
        ('the "lower-case" [sic] _ letters', "the lower-case sic letters"),
        ("  \u4e2d 42 ", ""),
    ],
)
def test_text_is_encoded_in_lower_case_without_accents_or_unknown_symbols(text: str, expected: str):
    assert spelled(symbols.encode(text)) == expected


def test_mel_scale_is_slaneys_linear_below_1_khz_and_logarithmic_above():
    # 15 mels are 1 kHz, 27 more are 6.4 times that (Slaney 1998).
    np.testing.assert_allclose(mel.hz_to_mel(np.array([60.0, 1000.0, 6400.0])), [0.9, 15.0, 42.0])
    np.testing.assert_allclose(
        mel.mel_to_hz(mel.hz_to_mel(np.array([0.0, 440.0, 1000.0, 7000.0]))), [0.0, 440.0, 1000.0, 7000.0]
    )


def test_mel_filters_are_triangles_of_unit_area_over_neighbouring_edges():
    bands = mel.mel_filters(22_050, 16_384, 80)
    edges = mel.mel_to_hz(np.linspace(0, float(mel.hz_to_mel(8000.0)), 82))
    bins = np.arange(8_193) * 22_050 / 16_384
    np.testing.assert_allclose(bands.sum(axis=1) * bins[1], 1.0, rtol=1e-2)
    for low, high, band in zip(edges[:-2], edges[2:], bands, strict=True):
        assert not band[(bins <= low) | (bins >= high)].any()
        assert (band[(bins > low) & (bins < high)] > 0).all()


def test_mel_spectrogram_equals_scipys_transform_times_the_filters(root: Path):
    samples, _ = soundfile.read(root / "wavs" / "LJ001-0003.wav", dtype="float32")
    hann = signal.get_window("hann", 1024, fftbins=True)
    transform = signal.ShortTimeFFT(hann, 256, 22_050, fft_mode="onesided")
    padded = np.pad(samples.astype(float), 512, mode="reflect")
    frames = 1 + len(samples) // 256
    spectrum = np.abs(transform.stft(padded, p0=2, p1=2 + frames))
    expected = np.log(np.maximum(mel.mel_filters(22_050, 1024, 16) @ spectrum, 1e-5))
    np.testing.assert_allclose(mel.log_mel(samples, 22_050, 1024, 256, 16), expected, atol=1e-6)


def test_silence_has_the_smallest_value():
    found = mel.log_mel(np.zeros(2_048, np.float32), 22_050, 1024, 256, 80)
    assert found.shape == (80, 9)
    np.testing.assert_allclose(found, np.log(1e-5))


def test_arrays_have_the_shapes_and_dtypes_of_the_network_inputs(root: Path):
    found = read(prepared(root).folder)
    assert {name: (array.shape, array.dtype.name) for name, array in found.items() if name.startswith("train/")} == {
        "train/mel": ((8, 16, 40), "float32"),
        "train/mel_length": ((8,), "int32"),
        "train/text": ((8, 12), "int32"),
        "train/text_length": ((8,), "int32"),
    }


def test_every_clip_is_in_one_split_with_its_own_text_and_spectrogram(root: Path):
    found = read(prepared(root).folder)
    seen = []
    for split in ("train", "test"):
        for row, position in enumerate(found[f"position/{split}"]):
            seen.append(int(position))
            length, frames = found[f"{split}/text_length"][row], found[f"{split}/mel_length"][row]
            assert spelled(found[f"{split}/text"][row]) == f"number {'abcdefghij'[position]}"
            assert (length, frames) == (8, 1 + (6_000 + 300 * position) // 256)
            samples, _ = soundfile.read(root / "wavs" / f"LJ001-{position:04}.wav", dtype="float32")
            expected = mel.log_mel(samples, 22_050, 1024, 256, 16)
            np.testing.assert_array_equal(found[f"{split}/mel"][row][:, :frames], expected)
            assert not found[f"{split}/mel"][row][:, frames:].any()
    assert sorted(seen) == list(range(10))
    assert len(found["position/test"]) == 2


def test_the_seed_chooses_the_split_and_limits_shorten_it(root: Path):
    first, same, other = (read(prepared(root, **options).folder) for options in ({}, {"train_limit": 3}, {"seed": 1}))
    assert first["position/train"].tolist() != other["position/train"].tolist()
    assert first["position/train"][:3].tolist() == same["position/train"].tolist()
    assert first["position/test"].tolist() == same["position/test"].tolist()


def test_samples_longer_than_the_arrays_are_left_out_counted_and_reported(root: Path):
    messages = []
    found = prepare(DataRequest("ljspeech", root, SMALL), lambda progress: messages.append(progress.sentence))
    assert [found.meta[name] for name in ("held", "dropped", "train_count", "test_count")] == [12, 2, 8, 2]
    assert "Left out 2 of 12 clips: longer than 12 characters or 40 frames" in messages
    assert prepared(root, characters=13, frames=41).meta["dropped"] == 0


def test_data_without_a_checksum_is_described_as_the_users_own(root: Path):
    assert case_inputs._origin(prepared(root).meta) == (
        "your data in the layout of LJSpeech 1.1 (unpacked folder): 8 training and 2 test samples; no checksum shows that it is "
        "the official data. Left out: clips longer than 12 characters or 40 frames: 2 (LJ001-0010.wav, LJ001-0011.wav)."
    )


def test_a_second_call_reuses_the_arrays_unless_a_file_changed(root: Path):
    first = prepared(root)
    stamp = (first.folder / "tensors.bin").stat().st_mtime_ns
    assert prepared(root).folder == first.folder
    assert (first.folder / "tensors.bin").stat().st_mtime_ns == stamp
    write_clip(root, "LJ001-0012", "new|new")
    assert prepared(root).folder != first.folder


def test_normalised_text_is_used_if_there_is_one(root: Path):
    write_clip(root, "LJ001-0012", "only raw|")
    write_clip(root, "LJ001-0013", "two fields")
    found = read(prepared(root, frames=41).folder)
    texts = {
        int(position): spelled(row)
        for split in ("train", "test")
        for position, row in zip(found[f"position/{split}"], found[f"{split}/text"], strict=True)
    }
    assert (texts[0], texts[12], texts[13]) == ("number a", "only raw", "two fields")


def error_of(root: Path, **options: object) -> str:
    with pytest.raises(UserError) as found:
        prepared(root, **options)
    assert not list((root.parent / "cache").rglob("tensors.bin")), "something half-prepared was left behind"
    return str(found.value)


def test_a_recording_without_text_is_reported(root: Path):
    path = write_clip(root, "LJ002-0001", None)
    assert (
        error_of(root)
        == f"{path} has no text: no line of {root / 'metadata.csv'} begins with 'LJ002-0001|'. Add the line, or remove the recording."
    )


def test_a_clip_with_empty_text_is_reported(root: Path):
    write_clip(root, "LJ002-0001", " |")
    assert error_of(root) == f"The clip 'LJ002-0001' has no text in {root / 'metadata.csv'}, line 13; add its text."


@pytest.mark.parametrize("text", ["42", "Привет, мир"])
def test_a_text_without_any_usable_character_is_not_called_missing(root: Path, text: str):
    write_clip(root, "LJ002-0001", text)
    assert error_of(root) == (
        f"The clip 'LJ002-0001' has no text in {root / 'metadata.csv'}, line 13, that can be used: no letter of {text!r} has "
        "a symbol. Write it in the letters a to z, with numbers spelled out."
    )


def test_a_clip_without_a_recording_is_reported(root: Path):
    (root / "wavs" / "LJ001-0004.wav").unlink()
    path = root / "wavs" / "LJ001-0004.wav"
    assert (
        error_of(root)
        == f"{root / 'metadata.csv'}, line 5, lists 'LJ001-0004', but {path} is missing; put it there, or remove the line. {HINT}"
    )


def test_a_damaged_recording_is_reported(root: Path):
    path = root / "wavs" / "LJ001-0004.wav"
    path.write_bytes(b"RIFF")
    assert error_of(root).startswith(f"{path} is damaged or truncated (")


def test_a_recording_that_ends_early_is_reported(root: Path):
    path = root / "wavs" / "LJ001-0004.flac"
    (root / "flac").mkdir()
    for wav in (root / "wavs").glob("*.wav"):
        samples, rate = soundfile.read(wav)
        soundfile.write(root / "flac" / f"{wav.stem}.flac", samples, rate)
    shutil.rmtree(root / "wavs")
    path = root / "flac" / "LJ001-0004.flac"
    path.write_bytes(path.read_bytes()[:4_000])
    assert error_of(root).startswith(f"{path} is damaged or truncated (")


def test_a_recording_with_another_sampling_rate_is_reported(root: Path):
    path = write_clip(root, "LJ002-0001", "slow|slow", rate=16_000)
    assert error_of(root) == f"{path} has 1 channel(s) at 16000 Hz; convert it to one channel at 22050 Hz."


def test_a_recording_shorter_than_half_a_window_is_reported(root: Path):
    path = write_clip(root, "LJ002-0001", "short|short", 512)
    assert error_of(root).startswith(f"{path} is shorter than half a window of 1024 samples")


@pytest.mark.parametrize("line", ["no bars", "|text|text"])
def test_an_invalid_metadata_line_is_reported(root: Path, line: str):
    with (root / "metadata.csv").open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    assert error_of(root).startswith(
        f"{root / 'metadata.csv'}, line 13: '{line}' does not have the form 'id|text|normalised text'"
    )


def test_a_repeated_metadata_line_is_reported(root: Path):
    write_clip(root, "LJ001-0000", "twice|twice")
    assert (
        error_of(root) == f"{root / 'metadata.csv'}, line 13: 'LJ001-0000' has a line already; every id has one line."
    )


def test_metadata_that_is_not_utf8_is_reported(root: Path):
    (root / "metadata.csv").write_bytes(b"LJ001-0000|caf\xe9|x\n")
    assert error_of(root) == f"{root / 'metadata.csv'} is not UTF-8 text (byte 14); convert it to UTF-8."


def test_a_folder_without_recordings_is_reported(root: Path):
    shutil.rmtree(root / "wavs")
    assert error_of(root) == (
        f"{root} does not hold 'wavs/<id>.wav or flac/<id>.flac', which is part of the layout 'unpacked folder' of 'ljspeech'; "
        f"put it there. {HINT}"
    )


def test_a_split_without_any_fitting_clip_is_reported(root: Path):
    assert error_of(root, frames=5).startswith(
        f"The train split is empty: {root} holds 0 clip(s) of at most 12 characters"
    )


def test_without_a_folder_the_error_names_the_official_source():
    with pytest.raises(UserError, match=r"'LJSpeech-1.1'.*https://keithito.com/LJ-Speech-Dataset/"):
        prepare(DataRequest("ljspeech"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"frames": 0}, "frames must be at least 1."),
        ({"window": 81}, "window must be an even number of samples."),
        ({"rate": 8_000}, "rate must be at least 16,000"),
        ({"train_limit": -1}, "train_limit must be at least 0."),
        ({"transcript": 1}, "has no option 'transcript'."),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, object], sentence: str):
    with pytest.raises(UserError, match=sentence):
        parse_options(find("ljspeech"), options)


def test_real_clips_are_prepared(real_data: Path):
    found = prepare(DataRequest("ljspeech", real_data, {"characters": 100, "frames": 566}))
    arrays = read(found.folder)
    counts = [found.meta[name] for name in ("held", "dropped", "train_count", "test_count")]
    assert counts[0] == 35
    assert sum(counts[1:]) == 35
    assert min(counts[1:]) > 0
    for mels, length in zip(arrays["train/mel"], arrays["train/mel_length"], strict=True):
        assert mels.min() >= np.log(1e-5) - 1e-5
        assert -8 < mels[:, :length].mean() < -3  # speech at its usual loudness
        assert not mels[:, length:].any()


def test_real_recordings_at_16_khz_are_prepared_if_that_rate_is_requested(real_data: Path):
    # 337 prompts in LJSpeech's layout, as FLAC.
    found = prepare(
        DataRequest("ljspeech", real_data / "allison-16k", {"rate": 16_000, "characters": 190, "frames": 560})
    )
    assert (found.meta["held"], found.meta["dropped"]) == (337, 0)
    assert "convert it to one channel at 22050 Hz" in error_of_real(real_data / "allison-16k")


def error_of_real(folder: Path) -> str:
    with pytest.raises(UserError) as found:
        prepare(DataRequest("ljspeech", folder))
    return str(found.value)
