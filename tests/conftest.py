"""What holds for every test: the same random numbers each time, and no figure left open."""

import os
from pathlib import Path

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


@pytest.fixture(scope="session")
def site_dir():
    """The folder of the built site: `make test` builds it first; ATTN_SITE names another one."""
    from tools import setup

    folder = Path(os.environ.get("ATTN_SITE", setup.ROOT / "_build" / "html"))
    if not (folder / "index.html").exists():
        assert setup.build_book() == 0, "the book does not build"
    return folder


@pytest.fixture(scope="session")
def site_url(site_dir):
    """The address of a plain file server of the site, without a slash at its end."""
    from tools import serve

    with serve.running(site_dir) as address:
        yield address


@pytest.fixture(scope="session")
def browser():
    """One Chromium for the session; each test opens a context or a page of its own."""
    from tools import browser

    assert browser.find(), "no Chromium or Chrome: `make test` installs one"
    with browser.launched() as chromium:
        yield chromium
