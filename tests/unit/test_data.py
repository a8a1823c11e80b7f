"""The data of the running examples: what is refused. `test_kernels.py` and the chapters use the data itself."""

import torch
from refusals import refused

from attn_helpers import noisy_curve, true_curve

WRONG = [
    (lambda: true_curve(3.0), TypeError, r"x must be a floating-point tensor .*, got float 3\.0"),
    (lambda: true_curve(torch.arange(3)), TypeError, r"x must be a floating-point tensor .*, got int64"),
    (lambda: noisy_curve(seed=1.5), TypeError, r"seed must be an integer of at least 0, got float 1\.5"),
    (lambda: noisy_curve(seed=-1), ValueError, r"seed must be an integer of at least 0, got -1"),
    (lambda: noisy_curve(0), ValueError, r"n must be an integer of at least 1, got 0"),
    (lambda: noisy_curve(2.0), TypeError, r"n must be an integer of at least 1, got float 2\.0"),
]  # fmt: skip


test_wrong_input_is_named = refused(WRONG)
