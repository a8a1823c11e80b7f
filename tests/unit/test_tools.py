"""Set-up and serving: nothing is done twice, and what is missing is said in one sentence."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from tools import browser, jupyter, serve, setup


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A book's folder in which nothing is installed; what set-up would run is written down."""
    for name in sum(setup.LISTS.values(), []):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    venv = tmp_path / ".venv"
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    monkeypatch.setattr(setup, "VENV", venv)
    monkeypatch.setattr(setup, "PYTHON", venv / "python")
    monkeypatch.setattr(setup, "STAMPS", venv / "installed.json")
    monkeypatch.setattr(setup, "NPM", tmp_path / "tools" / "npm")
    done = []

    def make_venv():
        venv.mkdir(exist_ok=True)
        setup.PYTHON.touch()

    monkeypatch.setattr(setup, "make_venv", make_venv)
    monkeypatch.setattr(setup, "repair", lambda: done.append("repair"))
    for part in setup.LISTS:
        monkeypatch.setattr(setup, f"install_{part}", lambda part=part: done.append(part))
    (setup.NPM / "node_modules").mkdir()
    return done


def test_nothing_is_done_twice(book):
    setup.prepare()
    setup.prepare()
    assert book == ["book", "npm"]
    setup.prepare(tests=True)
    assert book == ["book", "npm", "tests"]


def test_a_changed_list_is_installed_again(book):
    setup.prepare()
    (setup.ROOT / "requirements.txt").write_text("one more")
    setup.prepare()
    assert book == ["book", "npm", "book"]


def test_an_interrupted_set_up_is_repaired(book, monkeypatch):
    def cut_off():
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(setup, "install_npm", cut_off)
        with pytest.raises(KeyboardInterrupt):
            setup.prepare()
    setup.prepare()
    assert book == ["book", "repair", "npm"]


def test_a_moved_folder_gets_a_new_environment(book):
    setup.prepare()
    (setup.VENV / "left").touch()
    setup.STAMPS.write_text(setup.STAMPS.read_text().replace(str(setup.ROOT), "/elsewhere"))
    setup.prepare()
    assert not (setup.VENV / "left").exists()
    assert book == ["book", "npm"] * 2


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("NewConnectionError: failed", "check the network"),
        ("npm error code ENOTFOUND", "check the network"),
        ("ERROR: No matching distribution found for torch==2.13.0", "There is no torch for Python"),
    ],
)
def test_a_cause_is_one_sentence(output, sentence):
    with pytest.raises(setup.Stop, match=sentence) as caught:
        setup.explain(output)
    assert "\n" not in str(caught.value)


def test_pip_without_a_network_is_one_sentence(tmp_path, monkeypatch):
    """pip's own words, not ours for them."""
    monkeypatch.setattr(setup, "PYTHON", sys.executable)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_RETRIES", "1")
    nobody = "http://127.0.0.1:9/simple"
    with pytest.raises(setup.Stop, match="check the network and run it again"):
        setup.pip("--index-url", nobody, "--target", tmp_path, "torch")


def test_an_unknown_cause_is_left_to_the_caller():
    setup.explain("ERROR: something new")


def test_a_silent_index_is_not_waited_for(monkeypatch):
    def hang(*args, **kwargs):
        time.sleep(3)
        raise OSError

    monkeypatch.setattr(urllib.request, "urlopen", hang)
    start = time.monotonic()
    assert not setup.cpu_index_answers(seconds=0.2)
    assert time.monotonic() - start < 2


def test_a_damaged_package_is_found(tmp_path, monkeypatch):
    """One with a file cut short, one whose record was never written, one in order."""
    for name, written in [("short", "x"), ("whole", "xyz"), ("begun", "xyz")]:
        info = tmp_path / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (tmp_path / f"{name}.py").write_text(written)
        if name != "begun":
            (info / "RECORD").write_text(f"{name}.py,,3\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(setup, "PYTHON", sys.executable)
    monkeypatch.setattr(setup.shutil, "rmtree", lambda path, **kwargs: removed.append(path))
    removed = []
    setup.repair()
    assert {path.rsplit("/", 1)[-1] for path in removed} == {
        "short-1.dist-info",
        "begun-1.dist-info",
    }


def test_a_taken_port_is_said(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setenv("PORT", str(port))
        with pytest.raises(setup.Stop, match=f"Port {port} cannot be used"):
            serve.open_port()
    monkeypatch.setenv("PORT", "none")
    with pytest.raises(setup.Stop, match="Port none"):
        serve.open_port()


def test_without_a_wish_another_port_is_found(monkeypatch):
    monkeypatch.delenv("PORT", raising=False)
    with serve.open_port() as first, serve.open_port() as second:
        assert first.server_port != second.server_port


def test_no_browser_is_said(monkeypatch):
    monkeypatch.setattr(browser, "find", lambda: None)
    monkeypatch.setattr(browser, "is_root", lambda: False)
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: None)
    with pytest.raises(setup.Stop, match="need Chromium or Chrome") as caught:
        browser.find_or_install()
    assert "\n" not in str(caught.value)


def test_serve_gives_the_address_and_ends_with_ctrl_c(tmp_path):
    (tmp_path / "index.html").write_text("It works.")
    script = (
        "import pathlib, sys; from tools import serve, setup\n"
        f"serve.SITE = pathlib.Path({str(tmp_path)!r}); setup.build_book = lambda: 0\n"
        "sys.exit(serve.main())"
    )
    environment = {**os.environ, "CI": "true", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", script], cwd=setup.ROOT, env=environment, stdout=-1, text=True
    )
    said = process.stdout.readline()
    address = next(word for word in said.split() if word.startswith("http"))
    with urllib.request.urlopen(address) as page:
        assert page.read() == b"It works."
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 0
    assert "Ended." in process.stdout.read()


@pytest.mark.parametrize(
    "script", ["print('no such app')", "print('no such app', flush=1); input()"]
)
def test_a_jupyter_server_that_never_answers_is_said(tmp_path, monkeypatch, script):
    """Both where it ends at once and where it hangs."""
    monkeypatch.setattr(jupyter, "PATIENCE", 1)
    begun = []

    def start(*options, **streams):
        command = [sys.executable, "-c", script]
        begun.append(subprocess.Popen(command, stdin=subprocess.PIPE, **streams))
        return begun[-1]

    with (
        pytest.raises(RuntimeError, match="does not answer:\nno such app"),
        jupyter.running(start, tmp_path / "log.txt"),
    ):
        pass
    assert begun[0].poll() is not None  # nothing is left running
