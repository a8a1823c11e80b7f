"""The costs that the chapters print, against what is known without measuring."""

import builtins
import sys
import types

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attn_helpers import (
    MultiHeadAttention,
    best_time,
    measured,
    multiply_adds,
    parameter_count,
)
from attn_helpers import measure as module

A, B = torch.randn(3, 5), torch.randn(5, 7)


@pytest.mark.parametrize(
    ("count", "function"),
    [
        (3 * 5 * 7, lambda: A @ B),
        (2 * 3 * 5 * 7, lambda: torch.stack([A, A]) @ B),
        (3 * 5 * 7, lambda: torch.einsum("ij,jk->ik", A, B)),
        (3 * 5, lambda: A @ B[:, 0]),
        (5, lambda: B[:, 0] @ B[:, 1]),
        (3 * 5 * 7, lambda: F.linear(A, B.T, torch.zeros(7))),
        (4 * 5 * 3 * 9, lambda: nn.Conv1d(5, 4, 3)(torch.randn(5, 11))),
        (2 * 3 * 11 * (5 + 7) * 13, lambda: F.scaled_dot_product_attention(
            torch.randn(2, 3, 11, 5), torch.randn(2, 3, 13, 5), torch.randn(2, 3, 13, 7))),
        (2 * 3 * 11 * (8 + 8) * 13, lambda: F.scaled_dot_product_attention(
            torch.randn(2, 3, 11, 8), torch.randn(2, 3, 13, 8), torch.randn(2, 3, 13, 8))),
        (0, lambda: torch.softmax(A + 1, dim=-1)),
    ],
)  # fmt: skip
def test_multiply_adds_of_known_products(count, function):
    assert multiply_adds(function) == count


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_multiply_adds_of_a_layer(need_weights, device):
    layer = MultiHeadAttention(16, 4, bias=False).to(device)
    x = torch.zeros(2, 5, 16, device=device)
    count = multiply_adds(lambda x: layer(x, need_weights=need_weights), x)
    assert count == 2 * (4 * 5 * 16 * 16 + 2 * 5 * 5 * 16)


def test_parameter_count_is_of_what_is_learned():
    layer = nn.Linear(5, 7)
    assert parameter_count(layer) == 5 * 7 + 7
    layer.bias.requires_grad_(False)
    assert parameter_count(layer) == 5 * 7


def test_the_peak_is_that_of_the_block():
    with measured() as quiet:
        pass
    with measured() as busy:
        torch.ones(50_000_000)  # 200 MB, freed at once
    with measured() as quiet_again:
        pass
    assert 190e6 < busy.peak_bytes - quiet.peak_bytes < 260e6
    if sys.platform == "linux":
        assert busy.peak_bytes - quiet_again.peak_bytes > 150e6
    assert 0 < quiet.seconds < busy.seconds
    assert str(busy).endswith(f"s, peak memory {busy.peak_bytes / 1e6:.0f} MB")


def test_a_block_that_fails_is_measured_and_fails():
    with pytest.raises(ZeroDivisionError), measured() as cost:
        raise ZeroDivisionError
    assert cost.seconds > 0 and cost.peak_bytes > 0


def test_peak_where_there_is_no_proc(monkeypatch):
    def no_file(*_):
        raise OSError

    here = module._peak_bytes()
    monkeypatch.setattr(builtins, "open", no_file)
    assert module._peak_bytes() > 0  # macOS: resource
    monkeypatch.setitem(sys.modules, "resource", None)
    memory = types.SimpleNamespace(peak_wset=int(here))
    process = types.SimpleNamespace(memory_info=lambda: memory)
    monkeypatch.setitem(sys.modules, "psutil", types.SimpleNamespace(Process=lambda: process))
    assert module._peak_bytes() == here  # Windows: psutil


def test_best_time_is_the_fastest(monkeypatch):
    clock = iter([0.0, 5.0, 10.0, 12.0, 20.0, 23.0])
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(clock))
    calls = []
    assert best_time(calls.append, "x", repeats=3) == 2.0
    assert calls == ["x"] * 3


@pytest.mark.messages
def test_parameters_are_those_of_a_module():
    with pytest.raises(TypeError, match="module must be a torch.nn.Module, got float32 tensor"):
        parameter_count(A)


@pytest.mark.messages
def test_repeats_must_be_a_count():
    with pytest.raises(ValueError, match="repeats must be an integer of at least 1, got 0"):
        best_time(lambda: None, repeats=0)
