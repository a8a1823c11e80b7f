"""The checks of the exercises: every right variant passes, every classic slip is named.

The answers stand in `answers/`, one file for each file of `attn_helpers/checks`.
"""

import importlib
from pathlib import Path

import pytest
import torch

import attn_helpers
from attn_helpers.checks._report import Slip, close, compare

HERE = Path(__file__).parent
TOPICS = sorted(path.stem for path in (HERE / "answers").glob("*.py"))
ANSWERS = [importlib.import_module(f"answers.{topic}") for topic in TOPICS]
RIGHT = [case for topic in ANSWERS for case in topic.RIGHT]
WRONG = [case for topic in ANSWERS for case in topic.WRONG]
CHECKS = [getattr(attn_helpers, name) for name in dir(attn_helpers) if name.startswith("check_")]


def named(case):
    return getattr(case, "__name__", None)


@pytest.mark.parametrize("check, answer", RIGHT, ids=named)
def test_a_right_answer_passes(check, answer, capsys):
    assert check(answer) is None
    assert capsys.readouterr().out.startswith("✓ ")


@pytest.mark.messages
@pytest.mark.parametrize("check, answer, sentence", WRONG, ids=named)
def test_a_slip_is_named(check, answer, sentence, capsys):
    with pytest.raises(Slip, match=f"(?s){sentence}"):
        check(answer)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("check", CHECKS, ids=named)
def test_every_check_has_several_slips(check):
    assert sum(case[0] is check for case in WRONG) >= 3


@pytest.mark.messages
def test_a_complex_answer_is_named_before_its_real_part_can_pass():
    right = torch.ones(2)
    with pytest.raises(Slip, match=r"the output should hold real numbers, got torch.complex64"):
        compare(right + 1j, right, slips={}, what="the output")
    assert not close(right + 1j, right)


def draws(check, answer):
    before = torch.get_rng_state()
    check(answer)
    return not torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("check", CHECKS, ids=named)
def test_a_check_leaves_the_readers_random_numbers_alone(check):
    answers = [case[1] for case in RIGHT if case[0] is check]
    assert not all(draws(check, answer) for answer in answers)  # an answer may draw its own


def test_every_topic_has_its_answers():
    modules = Path(attn_helpers.__file__).parent.joinpath("checks").glob("[a-z]*.py")
    assert sorted(path.stem for path in modules) == TOPICS
