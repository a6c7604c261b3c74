"""Losses, gradients and updates of two sides: both are given the same values, so each difference is seen by itself."""

from __future__ import annotations

import pytest

SMALL = """
[inputs.x]
shape = [6, 4]
[targets.y]
shape = [6]
dtype = "int64"
low = 0
high = 3
"""
SIDE = """
from numpy_model import *

def model():
    def run(call, x):
        return call("b", np.tanh(call("a", x)))
    return NumpyModel([{dense}("a", 4, 5, 0), {dense}("b", 5, 3, 1)], run, {arguments})
"""
LOSS = """
def loss(outputs, batch):
    logs = outputs - np.log(np.exp(outputs).sum(-1, keepdims=True))
    return np.asarray(-logs[np.arange(len(logs)), batch["y"]].{over}())
"""
OPTIMIZER = """
def optimizer(model):
    return Sgd({constants})
"""


@pytest.fixture
def trained(port):
    """A port whose sides have a loss and an optimizer; `side(name, ...)` writes one anew."""

    def side(name, over="mean", constants="0.1", loss=LOSS, optimizer=OPTIMIZER, arguments=""):
        dense = "dense" if name == "first" else "dense_in_out"
        text = SIDE.format(dense=dense, arguments=arguments)
        port.write(f"{name}.py", text + loss.format(over=over) + optimizer.format(constants=constants))

    port.describe(SMALL)
    port.side = side
    side("first")
    side("second")
    return port


def stage(answer, name):
    return next(each for each in answer.json["record"]["training"] if each["name"] == name)


def test_equal_sides_are_equal_in_every_stage(trained):
    answer = trained.check()
    assert (answer.code, answer.json["verdict"]) == (0, "equal")
    compared = {each["name"]: (each["compared"], each["unseen"]) for each in answer.json["record"]["training"]}
    assert compared == {
        "loss": (1, ""),
        "gradients": (4, ""),
        "running statistics": (0, "there are none"),
        "training mode": (3, ""),
        "first update of the weights": (4, ""),
        "five updates of the weights": (4, ""),
        "batches of the loaders": (0, "first and second have no batches()"),
    }
    assert any(
        "Not looked at: running statistics (there are none); batches of the loaders" in sentence
        for sentence in answer.json["sentences"]
    )


def test_a_sum_in_the_place_of_a_mean_is_named_and_the_optimizer_is_compared_all_the_same(trained):
    trained.side("second", over="sum")
    answer = trained.check()
    assert (answer.code, answer.json["verdict"]) == (1, "different")
    (found,) = stage(answer, "loss")["differences"]
    assert found["cause"] == "cross-entropy: first has the mean over all that counts, second has the sum"
    assert stage(answer, "gradients")["unseen"] == "the losses differ already"
    assert stage(answer, "five updates of the weights")["compared"] == 4
    assert answer.json["sentences"][0].startswith("Not the same in training. In evaluation mode, 2 pairs of modules")


def test_a_tensor_that_no_gradient_reaches_is_named(trained):
    trained.side("second", arguments="frozen=('a.bias',)")
    answer = trained.check()
    (found,) = stage(answer, "gradients")["differences"]
    assert (found["left"], found["cause"]) == ("a.bias", "no gradient reaches this tensor in second")
    assert answer.code == 1


def test_what_differs_only_after_the_first_step_is_found_in_the_five(trained):
    trained.side("second", constants="0.1, momentum=0.9")
    answer = trained.check()
    assert not stage(answer, "first update of the weights")["differences"]
    causes = {each["cause"] for each in stage(answer, "five updates of the weights")["differences"]}
    assert causes == {"optimizer: first has momentum 0, second has momentum 0.9"}
    assert answer.code == 1


def test_weight_decay_on_one_side_is_named(trained):
    trained.side("first", constants="0.1, momentum=0.9")
    trained.side("second", constants="0.1, momentum=0.9, decay=0.01")
    answer = trained.check()
    said = "optimizer: first has no weight decay, second has a weight decay of 0.01 added to the gradient"
    assert {each["cause"] for each in stage(answer, "first update of the weights")["differences"]} == {said}
    assert sum(said in sentence for sentence in answer.json["sentences"]) == 1, "five updates repeat no cause"


def test_optimizers_are_compared_with_drawn_gradients_where_there_is_no_loss(trained):
    trained.side("first", loss="")
    trained.side("second", loss="", constants="0.05")
    answer = trained.check()
    assert stage(answer, "loss")["unseen"] == "first and second have no loss()"
    causes = {each["cause"] for each in stage(answer, "first update of the weights")["differences"]}
    assert causes == {"optimizer: first has learning rate 0.1, second has learning rate 0.05"}


def test_a_model_that_differs_already_says_why_gradients_are_not_compared(trained):
    text = (trained.folder / "second.py").read_text(encoding="utf-8")
    trained.write("second.py", text.replace("np.tanh(call", "np.sin(call"))
    answer = trained.check()
    assert stage(answer, "gradients")["unseen"] == "the models differ in evaluation mode already"
    assert stage(answer, "loss")["compared"] == 1
    assert stage(answer, "loss")["differences"] == [], "both losses take the outputs of the first side"


WRONG_LOSS = "def loss(outputs, batch):\n    return {}\n"


@pytest.mark.parametrize(
    ("side", "name", "said", "code"),
    [
        ({"loss": WRONG_LOSS.format("outputs")}, "loss", "loss() returned a tensor of shape (6, 3).", 2),
        ({"loss": WRONG_LOSS.format("batch['z']")}, "loss", "loss() of second.py failed in line", 2),
        ({"loss": WRONG_LOSS.format("np.asarray(np.nan)")}, "loss", "second nan: no numbers to compare", 2),
        ({"optimizer": "def optimizer(model):\n    1 / 0\n"}, "first update of the weights", "of second.py failed", 2),
        ({"optimizer": ""}, "first update of the weights", "second has no optimizer()", 0),
    ],
    ids=["shape", "no such name", "no number", "optimizer fails", "no optimizer"],
)
def test_a_function_that_fails_costs_its_stage_and_no_other(trained, side, name, said, code):
    trained.side("second", **side)
    answer = trained.check()
    assert answer.code == code
    assert said in stage(answer, name)["unseen"]
    assert sum(not each["unseen"] for each in answer.json["record"]["training"]) >= 2


def test_losses_without_a_number_are_not_called_equal(trained):
    for name in ("first", "second"):
        trained.side(name, loss=WRONG_LOSS.format("np.asarray(np.nan)"))
    answer = trained.check()
    assert (answer.code, answer.json["verdict"]) == (2, "unclear")
    assert stage(answer, "gradients")["unseen"] == "the loss is not a number"


def test_a_target_with_the_name_of_an_input_is_refused(trained):
    trained.describe(SMALL.replace("targets.y", "targets.x"))
    answer = trained.check()
    assert answer.code == 2
    assert "'x' is an input as well" in answer.err


def test_the_page_and_the_terminal_show_every_stage(trained, steelyard_port):
    trained.side("second", over="sum", constants="0.1, momentum=0.9")
    answer = trained.check(json=False)
    page = next(trained.folder.parent.glob("runs/**/report.html")).read_text(encoding="utf-8")
    for text in ("five updates of the weights", "the losses differ already", "momentum 0.9"):
        assert text in page
    assert "Loss: given the same outputs" in answer.out.replace("\n", " ")
