"""Jupyter for tests and benchmarks: a server of their own, gone when its block ends, and notebooks in JupyterLab."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import nbformat

from tools.setup import ROOT

PATIENCE = 60  # seconds that a server has for its start


@contextmanager
def running(start: Callable[..., subprocess.Popen], log: Path):
    """(address, process) of the server that `start` begins with the options it is given, once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--no-browser", "--allow-root", f"--port={port}", "--IdentityProvider.token="]
    with log.open("w") as written:
        server = start(*options, stdout=written, stderr=subprocess.STDOUT)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{address}/api", server, log)
        yield address, server
    finally:
        server.terminate()
        server.wait()


def _wait_for(address: str, server: subprocess.Popen, log: Path) -> None:
    """Ask until an answer comes; if none can come any more, say what the server wrote."""
    last = time.monotonic() + PATIENCE
    while True:
        try:
            urllib.request.urlopen(address, timeout=20).close()
            return
        except OSError:
            if server.poll() is not None or time.monotonic() > last:
                raise RuntimeError(f"Jupyter does not answer:\n{log.read_text()}") from None
            time.sleep(0.25)


@contextmanager
def lab(folder: Path):
    """The address of a JupyterLab over a folder, with this environment's packages and nobody's settings."""
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "PYTHONPATH": str(ROOT),
    }
    environment.pop("ATTN_STATIC", None)  # set while the book is built

    def start(*options, **streams) -> subprocess.Popen:
        own = [
            f"--ServerApp.root_dir={folder}",
            "--LabApp.news_url=",
            "--LabApp.extension_manager=readonly",
        ]
        command = [sys.executable, "-m", "jupyterlab", *options, *own]
        return subprocess.Popen(command, env=environment, cwd=folder, **streams)

    with running(start, folder / "log.txt") as (address, _):
        yield address


def write(path: Path, sources: list[str]) -> None:
    """A notebook with a code cell for each of the sources."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)


def run(page, number: int):
    """Run a cell of the notebook that is open in JupyterLab, wait for it, and return it."""
    cell = page.locator(".jp-CodeCell").nth(number)
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    page.wait_for_function(
        "number => /\\[\\d+\\]/.test(document.querySelectorAll('.jp-CodeCell')[number]"
        ".querySelector('.jp-InputPrompt').textContent)",
        arg=number,
        timeout=120_000,
    )
    return cell
