"""The argument checks that stand alone; the rest is tested where it is used."""

from fractions import Fraction

import numpy as np
from refusals import refused

from attn_helpers import KERNELS, _validate

WRONG = [
    (lambda: _validate.flag("signed", 1), TypeError, r"signed must be True or False, got int 1"),
    (lambda: _validate.flag("signed", None), TypeError, r"signed must be True or False, got NoneType None"),
    (lambda: _validate.flag("signed", np.bool_(True)), TypeError, r"signed must be True or False, got bool"),
    (lambda: _validate.number("at", 10**400), ValueError, r"at must be a finite number, got one beyond float64"),
    (lambda: _validate.number("at", -(10**5000)), ValueError, r"at must be a finite number, got one beyond float64"),
    (lambda: _validate.number("at", Fraction(10**400)), ValueError, r"at must be a finite number, got one beyond"),
    (lambda: _validate.one_of("kernel", ["gaussian"], KERNELS), ValueError, r"kernel must be one of 'gaussian', .*, got list"),
    (lambda: _validate.one_of("kernel", None, KERNELS), ValueError, r"kernel must be one of .*, got NoneType None"),
]  # fmt: skip


test_wrong_input_is_named = refused(WRONG)


def test_a_flag_comes_back():
    assert _validate.flag("signed", True) is True and _validate.flag("signed", False) is False
