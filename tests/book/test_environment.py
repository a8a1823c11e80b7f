"""The lists, Binder's files and the workflows say the same thing, and what they install works."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
import yaml
from pages import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def lines(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    return [line.split("#")[0].strip() for line in text.splitlines() if line.split("#")[0].strip()]


def names(requirements):
    return {re.match(r"[\w-]+", line)[0] for line in requirements}


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout


def test_the_package_asks_for_nothing_that_the_list_lacks():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    numpy_comes_with_torch_tools = {"numpy"}
    asked = names(project["dependencies"]) - numpy_comes_with_torch_tools
    assert asked <= names(lines("requirements.txt"))


def test_jupyter_book_stays_below_2():
    assert "jupyter-book>=1.0.4,<2" in lines("requirements.txt")
    updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]
    ignored = [rule for update in updates for rule in update.get("ignore", [])]
    assert {"dependency-name": "jupyter-book", "versions": [">=2"]} in ignored


def test_binder_reads_the_one_list():
    # A plain pin: a +cpu version does not exist for arm.
    assert lines("binder/requirements.txt")[1:] == ["-r ../requirements.txt"]
    assert any(re.fullmatch(r"torch==[\d.]+", line) for line in lines("requirements.txt"))
    assert lines("binder/runtime.txt") == ["python-3.11"]


@pytest.mark.parametrize("name", ["binder/postBuild", "binder/start", ".ci/run"])
def test_scripts_can_be_run(name):
    assert git("ls-files", "--stage", name).startswith("100755")
    assert b"\r" not in (ROOT / name).read_bytes()
    subprocess.run(["bash", "-n", ROOT / name], check=True)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_are_pinned_and_may_do_little(path):
    text = path.read_text(encoding="utf-8")
    for action in re.findall(r"uses: (.*)", text):
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action
    assert yaml.safe_load(text)["permissions"] in ({}, {"contents": "read"})


def test_no_large_file_in_git():
    files = [ROOT / name for name in git("ls-files").splitlines()]
    assert [f.name for f in files if f.exists() and f.stat().st_size > 200_000] == []


def test_every_chapter_was_measured_in_binders_environment():
    """The status page shows this file; to measure again: make test-slow, then cp _build/tests/binder.json back/."""
    measured = json.loads((ROOT / "back" / "binder.json").read_text(encoding="utf-8"))
    assert set(measured["chapters"]) == {path.stem for path in (ROOT / "chapters").glob("*.md")}
    assert max(cost["peak_bytes"] for cost in measured["chapters"].values()) < 1e9


@pytest.mark.slow
def test_a_wheel_works_without_its_source(tmp_path):
    """The drawing code is in the wheel: an explorer works where only the wheel was installed."""
    source = tmp_path / "source"
    subprocess.run(["git", "clone", "--quiet", ROOT, source], check=True)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, source]
    subprocess.run(command, check=True, capture_output=True)
    shutil.rmtree(source)
    target = tmp_path / "installed"
    wheel = next(tmp_path.glob("attn_helpers-*.whl"))
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", target, wheel]
    subprocess.run(install, check=True, capture_output=True)
    script = (
        "from attn_helpers import Readout, explore\n"
        "import attn_helpers; print(attn_helpers.__file__)\n"
        "@explore(x=(0, 3))\n"
        "def twice(x=1): return Readout('twice', 2 * x)\n"
        "print(type(twice.explorer).__name__)\n"
    )
    settings = {**os.environ, "PYTHONPATH": str(target)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=settings, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert str(target) in done.stdout
