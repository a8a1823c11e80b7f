"""A package that is too old or missing is named, with what to run."""

from importlib import metadata

import pytest

from attn_helpers import _versions


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


@pytest.mark.parametrize("version, came", [("7.6.5", "found 7.6.5"), (None, "found none")])
def test_an_old_or_missing_package_is_named(monkeypatch, version, came):
    installed(monkeypatch, ipywidgets=version)
    with pytest.raises(ImportError, match=rf"needs ipywidgets 8\.1 or newer, {came}: run  pip"):
        _versions.check()


def test_an_old_client_is_a_warning(monkeypatch):
    installed(monkeypatch, jupyterlab="3.6.1", notebook=None)
    with pytest.warns(UserWarning, match=r"jupyterlab 4\.2 or newer, found 3\.6\.1: run  pip"):
        _versions.check()
