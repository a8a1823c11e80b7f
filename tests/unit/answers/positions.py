"""Answers to the exercises of chapter 7: right variants, and the classic slips with the words that name them."""

import math

import torch

from attn_helpers import (
    SinusoidalEncoding,
    attention,
    check_add_positions,
    check_rotary_attention,
    check_shift,
    check_sinusoidal,
    rotary,
    sinusoidal_encoding,
)


def table(
    length,
    dim,
    *,
    base=10_000.0,
    swap=False,
    start=0,
    exponent=None,
    times=False,
    blocks=False,
    over_length=False,
    cut=True,
):
    """The encoding in a learner's style, with a switch for each slip."""
    pairs = (dim + 1) // 2
    i = torch.arange(start, start + length).float()[:, None]
    j = torch.arange(pairs).float()
    power = base ** (2 * j / dim if exponent is None else exponent(j) / dim)
    angle = (i * power if times else i / power) / (length if over_length else 1)
    even, odd = (angle.cos(), angle.sin()) if swap else (angle.sin(), angle.cos())
    if blocks:
        return torch.cat([even, odd], -1)[:, :dim]
    P = torch.zeros(length, 2 * pairs)
    P[:, 0::2], P[:, 1::2] = even, odd
    return P[:, :dim] if cut else P


def one_entry_at_a_time(length, dim):
    P = torch.empty(length, dim)
    for i in range(length):
        for c in range(dim):
            angle = i / 10_000 ** ((c // 2) * 2 / dim)
            P[i, c] = math.cos(angle) if c % 2 else math.sin(angle)
    return P


def by_logarithm(length, dim):
    """The form that most published code has."""
    P = torch.zeros(length, dim)
    rate = torch.exp(torch.arange(0, dim, 2) * (-math.log(10_000.0) / dim))
    angle = torch.arange(length)[:, None] * rate
    P[:, 0::2] = angle.sin()
    P[:, 1::2] = angle.cos()[:, : dim // 2]
    return P


def own_wavelength(length, dim, exponent=1):
    angle = torch.arange(length)[:, None] / 10_000 ** (exponent * torch.arange(dim) / dim)
    return torch.where(torch.arange(dim) % 2 == 0, angle.sin(), angle.cos())


def fails_for_odd(length, dim):
    P = torch.zeros(length, dim)
    angle = torch.arange(length)[:, None] / 10_000 ** (torch.arange(0, dim, 2) / dim)
    P[:, 0::2], P[:, 1::2] = angle.sin(), angle.cos()
    return P


TABLE_RIGHT = [sinusoidal_encoding, table, one_entry_at_a_time, by_logarithm]
TABLE_WRONG = [
    (lambda n, d: table(n, d, swap=True), "swapped"),
    (lambda n, d: table(n, d, blocks=True), "have to alternate"),
    (lambda n, d: table(n, d, exponent=lambda j: j), "exponent is j/d"),
    (lambda n, d: table(n, d, exponent=lambda j: 4 * j), "doubled"),
    (own_wavelength, "wavelength of its own"),
    (lambda n, d: own_wavelength(n, d, exponent=2), "wavelength of its own"),
    (lambda n, d: table(n, d, times=True), "multiplied by 10000"),
    (lambda n, d: table(n, d, exponent=lambda j: 0 * j), "same wavelength"),
    (lambda n, d: torch.zeros(n, d), "largest difference"),
    (
        lambda n, d: table(n, d)[:, 0::2].repeat_interleave(2, 1)[:, :d],
        "all columns are sines",
    ),
    (lambda n, d: table(n, d, start=1), "count from 0"),
    (lambda n, d: table(n, d, base=1000.0), "base is 1000"),
    (lambda n, d: table(n, d).T, "dim × length"),
    (fails_for_odd, "for an odd dim.*cut the table"),
    (lambda n, d: table(n, d, over_length=True), "divided by the length"),
    (lambda n, d: table(n, d, cut=False), r"for dim = 7.*\(11, 7\), got \(11, 8\)"),
    (lambda n, d: table(n, d, swap=d % 2 == 1), "swapped"),
]


def added(x):
    return x + sinusoidal_encoding(x.shape[-2], x.shape[-1]).to(x)


def row_by_row(x):
    P = sinusoidal_encoding(x.shape[-2], x.shape[-1]).to(x.dtype)
    return torch.stack([x[..., i, :] + P[i] for i in range(x.shape[-2])], dim=-2)


def in_place(x):
    x += sinusoidal_encoding(x.shape[-2], x.shape[-1]).to(x)
    return x


def pos(x, axis=-2):
    return sinusoidal_encoding(x.shape[axis], x.shape[-1])


ADD_RIGHT = [added, row_by_row, lambda x: SinusoidalEncoding(x.shape[-1])(x)]
ADD_WRONG = [
    (lambda x: x + pos(x, 0)[:, None], "batch axis"),
    (lambda x: x + pos(x)[0], "position 0"),
    (lambda x: x * pos(x), "multiplied"),
    (lambda x: torch.cat([x, pos(x).expand_as(x)], -1), "appended"),
    (lambda x: pos(x), "encoding alone"),
    (lambda x: pos(x).expand_as(x), "encoding alone"),
    (lambda x: x * x.shape[-1] ** 0.5 + pos(x), "√d first"),
    (lambda x: x, "unchanged"),
    (in_place, "changes the x"),
    (lambda x: x + pos(x), "bfloat16.*float32"),
    (lambda x: x + sinusoidal_encoding(5, 8).to(x), "raised RuntimeError"),
    (lambda x: x + pos(x, 1).to(x), r"right for x .*x\.shape\[-2\]"),
]


def shift_matrix(shift, dim, sign=1.0, one_angle=False, exponent=2):
    M = torch.zeros(dim, dim)
    for j in range(dim // 2):
        a = shift / 10_000 ** (0 if one_angle else exponent * j / dim)
        M[2 * j : 2 * j + 2, 2 * j : 2 * j + 2] = torch.tensor(
            [[math.cos(a), -sign * math.sin(a)], [sign * math.sin(a), math.cos(a)]]
        )
    return M


def fitted(shift, dim):
    """Least squares finds it, too."""
    P = sinusoidal_encoding(400, dim).double()
    return torch.linalg.lstsq(P[:-shift], P[shift:]).solution


SHIFT_RIGHT = [shift_matrix, fitted, lambda s, d: torch.matrix_power(shift_matrix(1, d), s)]
SHIFT_WRONG = [
    (lambda s, d: shift_matrix(s, d, sign=-1.0), "backwards"),
    (lambda s, d: shift_matrix(s, d).T, "backwards"),
    (lambda s, d: shift_matrix(s, d, one_angle=True), "same angle"),
    (lambda s, d: shift_matrix(s, d, sign=-1.0, one_angle=True), "same angle"),
    (lambda s, d: shift_matrix(s, d, exponent=1), "exponent is j/dim"),
    (lambda s, d: torch.eye(d), "does nothing"),
    (lambda s, d: torch.eye(d).roll(s, 0), "moves columns"),
    (lambda s, d: torch.eye(d).roll(s, 1), "moves columns"),
    (lambda s, d: shift_matrix(1, d), "by one position"),
    (lambda s, d: shift_matrix(s, 2), r"shape \(8, 8\), got \(2, 2\)"),
    (lambda s, d: None, "got None"),
    (lambda s, d: torch.zeros(d, d) + 1j, "real numbers"),
    (lambda s, d: torch.zeros(d, d), "largest difference"),
]


def rotary_attention(q, k, v):
    return attention(rotary(q), rotary(k), v)[0]


def rotary_by_hand(q, k, v):
    scores = rotary(q) @ rotary(k).mT / q.shape[-1] ** 0.5
    return scores.softmax(-1) @ v


ROTARY_RIGHT = [rotary_attention, rotary_by_hand]
ROTARY_WRONG = [
    (lambda q, k, v: attention(rotary(q), rotary(k), rotary(v))[0], "values are turned"),
    (lambda q, k, v: attention(rotary(q), k, v)[0], "only the queries"),
    (lambda q, k, v: attention(q, rotary(k), v)[0], "only the keys"),
    (lambda q, k, v: attention(q, k, v)[0], "nothing is turned"),
    (lambda q, k, v: attention(q + pos(q), k + pos(k), v)[0], "is added"),
    (lambda q, k, v: attention(rotary(q), rotary(k), v, scale=1.0)[0], "not divided by √d_k"),
    (
        lambda q, k, v: attention(*(rotary(x.transpose(0, 1)).transpose(0, 1) for x in (q, k)), v)[
            0
        ],
        "batch axis is taken",
    ),
    (lambda q, k, v: rotary(attention(q, k, v)[0]), "the output is turned"),
    (lambda q, k, v: attention(q + rotary(q), k + rotary(k), v)[0], "in their place"),
    (lambda q, k, v: attention(rotary(q), rotary(k), v), "tuple"),
]

CHECKS = [
    (check_sinusoidal, TABLE_RIGHT, TABLE_WRONG),
    (check_add_positions, ADD_RIGHT, ADD_WRONG),
    (check_shift, SHIFT_RIGHT, SHIFT_WRONG),
    (check_rotary_attention, ROTARY_RIGHT, ROTARY_WRONG),
]
RIGHT = [(check, answer) for check, answers, _ in CHECKS for answer in answers]
WRONG = [(check, *case) for check, _, cases in CHECKS for case in cases]
