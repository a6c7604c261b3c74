"""What differs between the settings of a document and those of a run, and what a document does not state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from steelyard.statistics.conditions import EACH, NOT_KEPT, RANDOM, Conditions, allowed_batches, common, differences

SAID = Conditions(
    cells=("bert:wikitext",),
    devices=("cuda",),
    device_names="NVIDIA P100",
    precision="float32",
    batches=(32,),
    data="wikitext-103-raw",
    sizes={"length": 128},
    optimizer="adamw",
    learning_rate=5e-5,
    schedule="constant",
    epochs=20,
    assumed=("length", "learning_rate"),
)
HERE = replace(SAID, device_names="NVIDIA H200", sizes={"length": 128, "hidden": 768}, assumed=(), momentum=0.0)


@pytest.mark.parametrize(
    ("here", "expected"),
    [
        ({}, ()),
        ({"devices": ("cpu",)}, ("another kind of device (CPU instead of NVIDIA GPU)",)),
        ({"devices": ("ascend",)}, ("another kind of device (Ascend NPU instead of NVIDIA GPU)",)),
        ({"batches": (2,)}, ("batch 2 instead of 32",)),
        ({"precision": "bfloat16"}, ("precision bfloat16 instead of float32",)),
        ({"data": RANDOM}, ("random data",)),
        ({"data": "wikitext-2"}, ("wikitext-2 instead of wikitext-103-raw",)),
        ({"sizes": {"length": 40}}, ("length 40 instead of 128 (assumed)",)),
        (
            {"cells": ("bert:tiny",), "sizes": {"length": 12}},
            ("another size of the network (bert:tiny instead of bert:wikitext)",),
        ),
        ({"learning_rate": 1.0, "epochs": 3, "optimizer": "sgd", "schedule": "x0.9 every 10 epochs"}, ()),
    ],
)
def test_what_forbids_a_word(here, expected):
    assert differences(SAID, replace(HERE, **here)) == expected


@pytest.mark.parametrize(
    ("said", "here", "expected"),
    [
        ("", "on", ()),
        ("on", "on", ()),
        ("on", "off", ("no dropout instead of dropout",)),
        ("on", "", ("no dropout instead of dropout",)),
        ("off", "on", ("dropout instead of no dropout",)),
        ("off", "", ()),
    ],
)
def test_dropout_counts_where_the_document_speaks_of_it(said, here, expected):
    assert differences(replace(SAID, dropout=said), replace(HERE, dropout=here)) == expected
    assert ("dropout" in replace(SAID, dropout=said).parts()) == (said == "on")
    assumed = replace(SAID, dropout=said, assumed=("dropout",))
    assert differences(assumed, replace(HERE, dropout=here)) == tuple(f"{each} (assumed)" for each in expected)


def test_several_differences_are_all_named():
    here = replace(HERE, devices=("cpu",), batches=(2,), data=RANDOM)
    assert differences(SAID, here) == (
        "another kind of device (CPU instead of NVIDIA GPU)",
        "batch 2 instead of 32",
        "random data",
    )


@pytest.mark.parametrize("name", ["devices", "batches", "precision", "data", "sizes", "cells"])
def test_what_is_not_stated_forbids_no_word_and_is_named(name):
    said = replace(SAID, **{name: type(getattr(SAID, name))()})
    other = {
        "devices": ("cpu",),
        "batches": (2,),
        "precision": "float64",
        "data": RANDOM,
        "sizes": {"length": 1},
        "cells": ("x:y",),
    }
    assert differences(said, replace(HERE, **{name: other[name]})) == ()
    words = {"devices": "device", "batches": "batch"}
    assert (words.get(name, name) in said.not_stated) == (name not in ("sizes", "cells"))


def test_settings_of_trainings_count_for_scores():
    here = replace(HERE, learning_rate=1.0, epochs=3, schedule="x0.9 every 10 epochs")
    assert differences(SAID, here, scores=True) == (
        "learning rate 1 instead of 5e-05 (assumed)",
        "schedule x0.9 every 10 epochs instead of constant",
        "epochs 3 instead of 20",
    )


def test_momentum_counts_where_there_is_one():
    said = Conditions(momentum=0.9)
    assert differences(said, Conditions(optimizer="adam", momentum=0.0), scores=True) == ()
    assert differences(said, Conditions(optimizer="sgd", momentum=0.5), scores=True) == ("momentum 0.5 instead of 0.9",)


def test_a_size_of_the_preset_that_the_document_does_not_state_differs_too():
    here = replace(HERE, sizes={"length": 128, "hidden": 32})
    assert differences(SAID, here, usual={"hidden": 768, "batch": 4}) == ("hidden 32 instead of 768",)
    assert differences(SAID, here) == (), "the preset's own size is assumed to be the document's"


def test_one_of_several_lengths_is_enough():
    said = Conditions(sizes={"frames": [1270, 2460]})
    assert differences(said, Conditions(sizes={"frames": 2460})) == ()
    assert differences(said, Conditions(sizes={"frames": 64})) == ("frames 64 instead of 1270 or 2460",)


@pytest.mark.parametrize(("batch_of", "allowed"), [("", (64, 128)), (EACH, (128,)), ("all devices", (64,))])
def test_a_batch_of_several_devices_is_read_as_the_document_says_or_both_ways(batch_of, allowed):
    said = Conditions(batches=(64,), batch_of=batch_of)
    assert allowed_batches(said, 2) == allowed
    assert allowed_batches(said, 1) == (64,)
    assert differences(said, Conditions(batches=(256,)), parts=2)


def test_an_altered_record_with_an_empty_list_differs_and_fails_nothing():
    assert differences(Conditions(sizes={"length": []}), HERE) == ("length 128 instead of nothing",)
    assert Conditions(sizes={"length": []}).text.startswith("length nothing")


def test_a_record_without_settings_forbids_every_word():
    assert differences(None, HERE) == (NOT_KEPT,)


def test_own_settings_stand_over_those_of_the_document():
    found = Conditions(batches=(256,), sizes={"length": 40}).over(SAID)
    assert (found.batches, found.data, found.sizes) == ((256,), "wikitext-103-raw", {"length": 40})
    assert found.assumed == ("learning_rate",), "a length that is stated is assumed no more"


def test_the_line_says_what_is_stated_what_is_assumed_and_what_is_not_stated():
    assert SAID.text == (
        "NVIDIA P100, batch 32, float32, wikitext-103-raw, adamw, schedule constant, 20 epochs; assumed: length 128, learning rate "
        "5e-05; not stated: versions"
    )
    assert common([SAID, replace(SAID, batches=(64,))]).batches == ()
    assert common([SAID, replace(SAID, batches=(64,))]).data == "wikitext-103-raw"
