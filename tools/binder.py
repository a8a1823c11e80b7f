"""Make the environment that Binder makes: from the repository's files alone, without Docker.

repo2docker takes a clone, the Python of runtime.txt, the list and postBuild; what a reader runs later goes
through start. Here all of it lands in one folder, with a home of its own, so that no setting of the person
who runs this gets in and none of hers is changed.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.setup import ROOT

# Set for the tests, the build or another environment; Binder knows none of them.
FOREIGN = ("ATTN_", "BOOK_", "IPYTHON", "JUPYTER", "MPL", "OMP_", "PYTHON", "VIRTUAL_ENV", "XDG_")


class Environment:
    """A clone in `book`, packages in `packages`, a reader's settings in `home`."""

    def __init__(self, folder: Path):
        self.book, self.packages, self.home = folder / "book", folder / "packages", folder / "home"
        self.settings = {
            **{name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)},
            "PATH": f"{self.packages / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
            "JUPYTER_CONFIG_DIR": str(self.home / ".jupyter"),
            "JUPYTER_DATA_DIR": str(self.home / ".local" / "share" / "jupyter"),
        }

    def run(self, *command) -> str:
        """What a command prints that runs in the clone; what it complains of is shown as it comes."""
        done = subprocess.run(
            command, cwd=self.book, env=self.settings, check=True, stdout=subprocess.PIPE, text=True
        )
        return done.stdout

    def start(self, *command, **options) -> subprocess.Popen:
        """Begin what a reader runs, as Binder does."""
        script = self.book / "binder" / "start"
        return subprocess.Popen([script, *command], cwd=self.book, env=self.settings, **options)

    def size(self) -> int:
        """Bytes of the installed packages."""
        files = (file for file in self.packages.rglob("*") if not file.is_symlink())
        return sum(file.stat().st_size for file in files if file.is_file())


def make(folder: Path) -> Environment:
    """The environment of what is committed, in an empty folder."""
    made = Environment(folder)
    made.home.mkdir()
    subprocess.run(["git", "clone", "--quiet", ROOT, made.book], check=True)
    version = (made.book / "binder" / "runtime.txt").read_text("utf-8").strip().replace("-", "")
    python = shutil.which(version) or sys.executable
    subprocess.run([python, "-m", "venv", made.packages], check=True)
    # No second try of an index: where PyTorch's does not answer, the others have what is needed.
    made.run("env", "PIP_RETRIES=0", "pip", "install", "-q", "-r", "binder/requirements.txt")
    made.run("binder/postBuild")
    return made
