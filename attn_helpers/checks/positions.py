"""Checks for chapter 7: positions, added and turned."""

import torch
from torch import Tensor

from attn_helpers.attention import attention
from attn_helpers.checks._report import Slip, call, compare, passed, slip
from attn_helpers.positions import rotary, sinusoidal_encoding


def _random(*shape: int) -> Tensor:
    """Numbers of the check's own: the reader's seed is neither used nor moved."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(7))


def _interleave(even: Tensor, odd: Tensor, dim: int) -> Tensor:
    return torch.stack([even, odd], dim=-1).flatten(1)[:, :dim]


def _wrong_tables(length: int, dim: int) -> dict[str, Tensor | tuple[Tensor, ...]]:
    """What the classic slips make of the table, each under the sentence that names it."""
    right = sinusoidal_encoding(length, dim)
    i = torch.arange(float(length))[:, None]
    pair = torch.arange((dim + 1) // 2)
    column = torch.arange(float(dim))
    angle = i / 10_000 ** (2 * pair / dim)
    own = i / 10_000 ** (column / dim)
    twice = i / 10_000 ** (2 * column / dim)
    even = torch.arange(dim) % 2 == 0

    def of(angles: Tensor) -> Tensor:
        return _interleave(angles.sin(), angles.cos(), dim)

    return {
        "sine and cosine are swapped: even columns are sines, odd columns cosines": (
            _interleave(angle.cos(), angle.sin(), dim)
        ),
        "all sines stand on the left and all cosines on the right: they have to alternate": (
            torch.cat([angle.sin(), angle.cos()], dim=-1)[:, :dim]
        ),
        "the exponent is j/d: pair j has the exponent 2j/d": of(i / 10_000 ** (pair / dim)),
        "the exponent is doubled: column 2j has the exponent 2j/d, not 4j/d": (
            of(i / 10_000 ** (4 * pair / dim))
        ),
        "every column has a wavelength of its own: columns 2j and 2j + 1 share one": (
            torch.where(even, own.sin(), own.cos()),
            torch.where(even, twice.sin(), twice.cos()),
        ),
        "the position is multiplied by 10000^(2j/d): divide by it": of(
            i * 10_000 ** (2 * pair / dim)
        ),
        "all columns are sines: every second one is a cosine": (
            _interleave(angle.sin(), angle.sin(), dim)
        ),
        "all pairs have the same wavelength: divide by 10000^(2j/d)": of(i.expand_as(angle)),
        "the first position is 1: count from 0": sinusoidal_encoding(length + 1, dim)[1:],
        "the position is divided by the length: count 0, 1, 2, …": of(angle / length),
        "the base is 1000: it is 10000": sinusoidal_encoding(length, dim, base=1000),
        "the table is dim × length: rows are positions": right.mT,
    }


def check_sinusoidal(answer) -> None:
    """Check ``answer(length, dim)``: the table P[i, 2j] = sin(i/10000^(2j/dim)), cosine beside it.

    Works for odd dim, too. Chapter 7, exercise 1.
    """
    length, dim = 11, 8
    compare(
        call(answer, length, dim),
        sinusoidal_encoding(length, dim),
        slips=_wrong_tables(length, dim),
        what="the table",
    )
    try:
        odd = call(answer, length, 7)
    except Slip as error:
        raise Slip(
            f"right for dim = 8; for an odd dim, {error}. The last cosine is missing: "
            "cut the table to dim columns"
        ) from error
    compare(
        odd,
        sinusoidal_encoding(length, 7),
        slips=_wrong_tables(length, 7),
        what="for dim = 7, the table",
    )
    passed("sines and cosines alternate, each pair slower than the last, for even and odd dim")


def check_add_positions(answer) -> None:
    """Check ``answer(x)``: the sequence plus its encoding, x + P.

    x (..., length, dim) -> the same shape, dtype and device; x is left as it was.
    Chapter 7, exercise 2.
    """
    batch, length, dim = 5, 5, 8  # as many sequences as positions: the wrong axis raises no error
    x = _random(batch, length, dim)
    table = sinusoidal_encoding(length, dim)
    given = x.clone()
    compare(
        call(answer, given),
        x + table,
        slips={
            "the encoding runs along the batch axis: tokens of one sequence all get the same "
            "vector; positions are the last axis but one": x + table[:, None],
            "every token gets the encoding of position 0": x + table[0],
            "the encoding is multiplied with x: add it": x * table,
            "the encoding is appended to x: add it": torch.cat([x, table.expand_as(x)], dim=-1),
            "this is the encoding alone, once per sequence: add it to x": table.expand_as(x),
            "this is the encoding alone: add it to x": table,
            "x is multiplied by √d first: that belongs to the embedding layer of the paper": (
                x * dim**0.5 + table
            ),
            "x is unchanged: add the encoding": x,
        },
        what="the sum",
    )
    if not torch.equal(given, x):
        slip("your function changes the x that it was given: return a new tensor")
    for other in [_random(3, dim), _random(2, 4, 30, dim)]:
        try:
            result = call(answer, other.clone())
        except Slip as error:
            raise Slip(
                f"right for x of shape {tuple(x.shape)}; for {tuple(other.shape)}, {error}. "
                "The sequence is the last axis but one, x.shape[-2], however many stand before it"
            ) from error
        compare(
            result,
            other + sinusoidal_encoding(other.shape[-2], dim),
            slips={},
            what=f"for x of shape {tuple(other.shape)}, the sum",
        )
    half = call(answer, x.bfloat16())
    if half.dtype != torch.bfloat16:
        slip(f"a bfloat16 sequence comes back as {half.dtype}: convert the encoding with .to(x)")
    passed("every sequence of the batch gets the same encoding, one row per position")


def check_shift(answer) -> None:
    """Check ``answer(shift, dim)``: the matrix M, (dim, dim), with P[i] M = P[i + shift] for every i.

    Row vectors, dim even. Chapter 7, exercise 3.
    """
    shift, dim, n = 3, 8, 200
    table = sinusoidal_encoding(n + shift, dim)
    result = call(answer, shift, dim)
    if not isinstance(result, Tensor) or result.is_complex() or result.shape != (dim, dim):
        compare(result, torch.zeros(dim, dim), slips={}, what="the matrix")
    one_angle = torch.block_diag(*[_turn(torch.tensor(float(shift)))] * (dim // 2))
    compare(
        table[:n] @ result.detach().to(table),
        table[shift:],
        slips={
            "the matrix turns backwards, P[i] to P[i − shift]: rows stand on the left of the matrix "
            "here, so swap the signs of the two sines": (
                table[:n] @ torch.linalg.inv(_shift_matrix(shift, dim))
            ),
            "all pairs turn by the same angle: pair j turns by shift/10000^(2j/dim)": (
                table[:n] @ one_angle
            ),
            "the exponent is j/dim: pair j turns by shift/10000^(2j/dim)": (
                table[:n] @ _shift_matrix(shift, dim, exponent=1)
            ),
            "all pairs turn by the same angle, and backwards: pair j turns by shift/10000^(2j/dim)": (
                table[:n] @ one_angle.mT
            ),
            "the matrix moves columns about: it has to turn each pair, P[i] itself is not shifted": (
                table[:n].roll(shift, -1),
                table[:n].roll(-shift, -1),
            ),
            "the matrix does nothing": table[:n],
            "the matrix shifts by one position, whatever the shift": (
                table[:n] @ _shift_matrix(1, dim)
            ),
        },
        what="P[i] M",
    )
    passed("one matrix moves every position by the shift: each pair turns by its own angle")


def _turn(angle: Tensor) -> Tensor:
    """(sin a, cos a) @ turn(b) = (sin(a + b), cos(a + b))."""
    return torch.stack(
        [torch.stack([angle.cos(), -angle.sin()]), torch.stack([angle.sin(), angle.cos()])]
    )


def _shift_matrix(shift: int, dim: int, exponent: int = 2) -> Tensor:
    angles = shift / 10_000 ** (exponent * torch.arange(dim // 2) / dim)
    return torch.block_diag(*[_turn(angle) for angle in angles])


def check_rotary_attention(answer) -> None:
    """Check ``answer(queries, keys, values)``: attention whose queries and keys are turned first.

    All three (..., n, d) -> output (..., n, d). Chapter 7, exercise 4.
    """
    q, k, v = _random(3, 2, 5, 6)
    p = sinusoidal_encoding(5, 6)

    def output(queries: Tensor, keys: Tensor, values: Tensor, scale: float | None = None) -> Tensor:
        return attention(queries, keys, values, scale=scale)[0]

    result = call(answer, q.clone(), k.clone(), v.clone())
    if isinstance(result, tuple):
        slip("expected the output alone, got a tuple: attention returns (output, weights)")
    compare(
        result,
        output(rotary(q), rotary(k), v),
        slips={
            "the values are turned, too: they carry content, turn queries and keys only": (
                output(rotary(q), rotary(k), rotary(v))
            ),
            "only the queries are turned: turn the keys as well": output(rotary(q), k, v),
            "only the keys are turned: turn the queries as well": output(q, rotary(k), v),
            "there is no order in this: nothing is turned, or every token of a sequence by the same "
            "angle, as when the batch axis is taken for the positions": output(q, k, v),
            "the sinusoidal encoding is added: rotary turns the vectors instead": (
                output(q + p, k + p, v)
            ),
            "the output is turned, queries and keys are not: turn them before the scores": (
                rotary(output(q, k, v))
            ),
            "the turned vectors are added to the others: use them in their place": (
                output(q + rotary(q), k + rotary(k), v)
            ),
            "the scores are not divided by √d_k": output(rotary(q), rotary(k), v, scale=1.0),
        },
        what="the output",
    )
    passed("queries and keys are turned, values are not: the weights know the offset")
