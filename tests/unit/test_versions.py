"""A package that is too old or missing is named, with what to run."""

import os
import subprocess
import sys
import tomllib
from importlib import metadata

import pytest

from attn_helpers import _versions
from tools.setup import ROOT


def installed(monkeypatch, **versions):
    def version(name):
        if versions.get(name, "99.0") is None:
            raise metadata.PackageNotFoundError(name)
        return versions.get(name, "99.0")

    monkeypatch.setattr(metadata, "version", version)


def test_what_is_new_enough_passes(monkeypatch, recwarn):
    installed(monkeypatch, ipywidgets="8.1.0", anywidget="0.10.0rc1", jupyterlab="4.2.0")
    _versions.check()
    assert not recwarn.list


def test_the_limits_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    limits = {f"{package}>={least}" for package, least in _versions.NEEDED.items()}
    assert limits == set(project["dependencies"]) - {"numpy"}  # comes with torch's tools


@pytest.mark.parametrize("package, least", _versions.NEEDED.items())
@pytest.mark.parametrize("version, came", [("0.0.5", "found 0.0.5"), (None, "found none")])
def test_an_old_or_missing_package_is_named(monkeypatch, package, least, version, came):
    installed(monkeypatch, **{package: version})
    sentence = (
        rf"needs {package} {least} or newer, {came}: run  pip install -U '{package}>={least}'"
    )
    with pytest.raises(ImportError, match=sentence):
        _versions.check()


def test_the_sentence_comes_before_any_other_error(tmp_path):
    """Whoever imports the helpers with an old package reads the sentence last, below no error of that package."""
    (tmp_path / "ipywidgets.py").write_text("raise RuntimeError('too old to be imported')")
    old = tmp_path / "ipywidgets-7.6.5.dist-info"
    old.mkdir()
    (old / "METADATA").write_text("Metadata-Version: 2.1\nName: ipywidgets\nVersion: 7.6.5\n")
    done = subprocess.run(
        [sys.executable, "-c", "import attn_helpers"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
    )
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: attn_helpers needs ipywidgets 8.1 or newer, found 7.6.5")
    assert "too old to be imported" not in done.stderr


@pytest.mark.parametrize("client, least", _versions.WANTED.items())
def test_an_old_client_is_a_warning(monkeypatch, client, least):
    """One that is missing is none: another client may show the notebook."""
    clients = {**dict.fromkeys(_versions.WANTED), client: "3.6.1"}
    installed(monkeypatch, **clients)
    with pytest.warns(UserWarning, match=rf"{client} {least} or newer, found 3\.6\.1: run  pip"):
        _versions.check()
