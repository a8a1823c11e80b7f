"""Running the chapters' cells, so that a page never shows an output that its sources no longer give.

jupyter-cache compares a chapter's cells only: a change of the helper module, of this folder or of the environment list
would keep yesterday's outputs. Here their fingerprint names the cache folder and is a configuration value, so Sphinx reads
(and the cache runs) every chapter again when it changes. A build that failed leaves nothing behind that would make the next one pass.
"""

import hashlib
import os
import shutil
from pathlib import Path


def fingerprint(*paths):
    """Hash of all files in the given files and folders."""
    files = [
        file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*")))
    ]
    digest = hashlib.sha256()
    for file in files:
        if file.is_file() and "__pycache__" not in file.parts:
            digest.update(str(file.name).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def prepare(app, config):
    """Before anything is read: the kernels' environment, and a cache that belongs to this code."""
    source = Path(app.srcdir)
    os.environ["ATTN_STATIC"] = "1"  # explorers write HTML for a page, not a widget
    os.environ.setdefault(
        "OMP_WAIT_POLICY", "PASSIVE"
    )  # waiting threads do not take a core from working ones
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(source), os.environ.get("PYTHONPATH")])
    )
    helpers = sorted((source / "attn_helpers").rglob("*.py"))
    words = source / "attn_helpers" / "static" / "words.json"  # they stand in the outputs
    config.code_fingerprint = fingerprint(
        *helpers, words, Path(__file__).parent, source / "requirements.txt"
    )
    config.look_fingerprint = fingerprint(source / "attn_helpers" / "static", source / "_static")
    caches = Path(app.outdir).parent / ".jupyter_cache"
    config.nb_execution_cache_path = str(caches / config.code_fingerprint)
    for old in caches.glob("*"):
        if old.name != config.code_fingerprint:
            shutil.rmtree(old, ignore_errors=True)


def forget_failure(app, exception):
    """A warning fails the build once and would pass the next time, when the page is not read again: forget the pages."""
    if exception or app._warncount:
        shutil.rmtree(app.doctreedir, ignore_errors=True)
        shutil.rmtree(Path(app.outdir) / "reports", ignore_errors=True)


def setup(app):
    app.add_config_value("code_fingerprint", "", "env")
    app.add_config_value("look_fingerprint", "", "html")
    app.connect("config-inited", prepare)
    app.connect("build-finished", forget_failure, priority=900)
