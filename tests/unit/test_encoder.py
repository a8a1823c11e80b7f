"""The encoder block, with torch's own layer as the independent answer."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from attn_helpers import EncoderBlock, MultiHeadAttention, causal_mask, length_mask

# All different, so that swapped axes cannot pass.
BATCH, N, EMBED, HEADS, HIDDEN = 2, 7, 15, 5, 11


def from_torch(layer: nn.TransformerEncoderLayer, **options) -> EncoderBlock:
    """An EncoderBlock with torch's weights."""
    block = EncoderBlock(EMBED, HEADS, HIDDEN, **options)
    block.attention = MultiHeadAttention.from_torch(layer.self_attn)
    block.norm_1.load_state_dict(layer.norm1.state_dict())
    block.norm_2.load_state_dict(layer.norm2.state_dict())
    block.feed_forward[0].load_state_dict(layer.linear1.state_dict())
    block.feed_forward[2].load_state_dict(layer.linear2.state_dict())
    return block


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("eps", [1e-5, 1e-1])
@pytest.mark.parametrize("masked", [False, True])
def test_agrees_with_torch(norm_first, activation, eps, masked):
    layer = nn.TransformerEncoderLayer(
        EMBED, HEADS, HIDDEN, 0.0, activation, eps, batch_first=True, norm_first=norm_first
    )
    for parameter in layer.parameters():  # torch starts every bias at 0 and every norm at 1
        nn.init.normal_(parameter, std=0.5)
    block = from_torch(layer, norm_first=norm_first, activation=activation, layer_norm_eps=eps)
    x = 3 * torch.randn(BATCH, N, EMBED)
    mask = causal_mask(N) if masked else None
    output, weights = block(x, mask=mask)
    expected = layer(x, src_mask=~mask if masked else None)  # torch's True means "leave out"
    torch.testing.assert_close(output, expected, rtol=1e-5, atol=1e-5)
    assert weights.shape == (BATCH, HEADS, N, N)
    torch.testing.assert_close(weights.sum(-1), torch.ones(BATCH, HEADS, N))
    if masked:
        assert (weights.masked_select(~mask) == 0).all()


def test_weights_are_those_of_its_attention():
    block = EncoderBlock(EMBED, HEADS, HIDDEN, norm_first=True)
    x = torch.randn(N, EMBED)
    torch.testing.assert_close(block(x)[1], block.attention(block.norm_1(x))[1])


def test_only_attention_mixes_tokens():
    """A token that nobody may look at changes its own output and no other."""
    block = EncoderBlock(EMBED, HEADS, HIDDEN)
    x = torch.randn(N, EMBED)
    changed = x.clone()
    changed[3] += 1
    hidden = torch.ones(N, N, dtype=torch.bool)
    hidden[:, 3] = False
    difference = (block(x, mask=hidden)[0] - block(changed, mask=hidden)[0]).abs().amax(-1)
    assert difference[3] > 1e-2
    assert difference[torch.arange(N) != 3].max() == 0


def test_padding_does_not_change_the_sentence():
    block = EncoderBlock(EMBED, HEADS, HIDDEN)
    x = torch.randn(2, N, EMBED)
    mask = length_mask(torch.tensor([4, N]), N).unsqueeze(-2)
    padded, weights = block(x, mask=mask)
    alone, alone_weights = block(x[0, :4])
    torch.testing.assert_close(padded[0, :4], alone)
    torch.testing.assert_close(weights[0, :, :4, :4], alone_weights)


@settings(deadline=None, max_examples=20)
@given(
    batch=st.lists(st.integers(1, 3), max_size=2),
    n=st.integers(1, 5),
    heads=st.integers(1, 3),
    width=st.integers(1, 3),
    norm_first=st.booleans(),
)
def test_any_size_and_any_batch(batch, n, heads, width, norm_first):
    block = EncoderBlock(heads * width, heads, 2, norm_first=norm_first)
    x = torch.randn(*batch, n, heads * width)
    output, weights = block(x)
    assert output.shape == x.shape
    assert weights.shape == (*batch, heads, n, n)
    flat = x.reshape(-1, n, heads * width)
    each = torch.stack([block(one)[0] for one in flat]).reshape(x.shape)
    torch.testing.assert_close(output, each, rtol=1e-4, atol=1e-5)


def test_dropout_acts_in_training_only_and_never_on_the_weights_shown():
    block = EncoderBlock(EMBED, HEADS, HIDDEN, dropout=0.5)
    x = torch.randn(N, EMBED)
    assert not torch.equal(block(x)[0], block(x)[0])
    assert torch.equal(block(x)[1], block(x)[1])
    torch.testing.assert_close(block(x)[1].sum(-1), torch.ones(HEADS, N))
    block.eval()
    assert torch.equal(block(x)[0], block(x)[0])


def test_all_dropped_parts_leave_the_residual():
    """Nearly everything dropped: pre-norm passes x through, because it is added back."""
    block = EncoderBlock(EMBED, HEADS, HIDDEN, norm_first=True, dropout=1 - 1e-12)
    x = torch.randn(N, EMBED)
    torch.testing.assert_close(block(x)[0], x)


def test_float64_and_every_parameter_learns():
    block = EncoderBlock(EMBED, HEADS, HIDDEN).double()
    output, _ = block(torch.randn(N, EMBED, dtype=torch.float64))
    assert output.dtype == torch.float64
    output.square().mean().backward()
    for name, parameter in block.named_parameters():
        if name != "attention.W_k.bias":  # cancels in the softmax (chapter 4)
            assert parameter.grad.abs().max() > 0, name


@pytest.mark.messages
@pytest.mark.parametrize(
    ("arguments", "named", "error", "message"),
    [
        ((15, 4, 11), {}, ValueError, r"num_heads must divide embed_dim = 15.*got 4"),
        ((0, 1, 11), {}, ValueError, r"embed_dim must be an integer of at least 1, got 0"),
        ((15, 5, 2.5), {}, TypeError, r"hidden_dim must be an integer.*got float 2\.5"),
        ((15, 5, 11), {"activation": "tanh"}, ValueError, r"activation.*'relu', 'gelu'.*'tanh'"),
        ((15, 5, 11), {"layer_norm_eps": 0}, ValueError, r"layer_norm_eps must be a positive"),
        ((15, 5, 11), {"dropout": 1.0}, ValueError, r"dropout must be at least 0 and below 1"),
        ((15, 5, 11), {"norm_first": "yes"}, TypeError, r"norm_first must be True or False"),
    ],
)
def test_refuses_bad_sizes(arguments, named, error, message):
    with pytest.raises(error, match=message):
        EncoderBlock(*arguments, **named)


@pytest.mark.messages
@pytest.mark.parametrize("norm_first", [False, True])
def test_refuses_bad_input(norm_first):
    block = EncoderBlock(EMBED, HEADS, HIDDEN, norm_first=norm_first)
    with pytest.raises(TypeError, match="x must have the dtype and device of the layer"):
        block(torch.randn(N, EMBED, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"x must have shape \(\.\.\., n, 15\).*\(7, 14\)"):
        block(torch.randn(N, 14))
    with pytest.raises(ValueError, match=r"x must have shape \(\.\.\., n, 15\)"):
        block(torch.randn(EMBED))
    with pytest.raises(TypeError, match="x must be a floating-point tensor"):
        block(torch.zeros(N, EMBED, dtype=torch.long))
    with pytest.raises(TypeError, match="mask must be a bool tensor"):
        block(torch.randn(N, EMBED), mask=torch.ones(N, N))
    with pytest.raises(ValueError, match="mask must broadcast"):
        block(torch.randn(N, EMBED), mask=torch.ones(N, N + 1, dtype=torch.bool))
