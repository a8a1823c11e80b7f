"""What holds for every test: the same random numbers each time, and no figure left open."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("MPLBACKEND", "agg")

import pytest


@pytest.fixture(autouse=True)
def same_numbers():
    """Seed torch and numpy, so that a failure can be repeated."""
    import numpy as np
    import torch

    torch.manual_seed(0)
    np.random.seed(0)


@pytest.fixture(autouse=True)
def no_figure_left_open():
    """Close what a test drew: figures that pile up slow the next tests down."""
    yield
    import sys

    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
