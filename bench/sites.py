"""Built sites served as a host would: compressed, and what a page takes from a CDN from a second server here."""

import gzip
import subprocess
import tarfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from bench.stock import WORK
from tools import serve, setup

# The versions that the stock pages name, as npm has them.
PACKAGES = {
    "npm/@jupyter-widgets/html-manager@1.0.6": "@jupyter-widgets/html-manager@1.0.6",
    "npm/mathjax@3": "mathjax@3.2.2",
    "ajax/libs/require.js/2.3.4": "requirejs@2.3.4",
}
HOSTS = ("https://cdn.jsdelivr.net/", "https://cdnjs.cloudflare.com/")
COMPRESSED = {".woff2", ".woff", ".png", ".jpg", ".zip", ".ico"}  # already


def fetch_cdn() -> Path:
    """The folder that stands for the CDNs: npm's packages, unpacked at their addresses there."""
    folder, (node, npm) = WORK / "cdn", setup.npm_command()
    for place, package in PACKAGES.items():
        if (folder / place).exists():
            continue
        command = [node, npm, "pack", "--silent", package, "--pack-destination", WORK]
        name = subprocess.run(command, check=True, capture_output=True, text=True, cwd=WORK).stdout
        with tarfile.open(WORK / name.split()[-1]) as archive:
            archive.extractall(WORK / "unpacked", filter="data")
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (WORK / "unpacked" / "package").rename(folder / place)
    require = folder / "ajax/libs/require.js/2.3.4"
    if not (require / "require.min.js").exists():  # npm has it plain; its own tool makes it small
        make = [
            node,
            "bin/r.js",
            "-o",
            "baseUrl=.",
            "paths.lib=require",
            "name=lib",
            "out=require.min.js",
        ]
        subprocess.run(make, check=True, capture_output=True, cwd=require)
    return folder


@cache
def packed(file: Path, cdn: str) -> tuple[bytes, bool]:
    """What goes over the wire, and whether it is gzip; the CDNs' addresses in a page become `cdn`."""
    content = file.read_bytes()
    if file.suffix == ".html":
        for host in HOSTS:
            content = content.replace(host.encode(), cdn.encode())
        content = content.replace(b' integrity="', b' data-integrity="')  # of the CDN's own file
    if file.suffix in COMPRESSED:
        return content, False
    return gzip.compress(content, 6, mtime=0), True


class Handler(serve.Handler):
    """A static host with gzip."""

    cdn = ""

    def do_GET(self):
        file = Path(self.translate_path(self.path))
        if not file.is_file():
            return self.send_error(404)
        content, zipped = packed(file, self.cdn)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(file)))
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Access-Control-Allow-Origin", "*")
        if zipped:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def served(folder: Path, *, cdn: str = ""):
    """The address of a folder, as long as the block lasts."""
    packed.cache_clear()
    with serve.running(folder, type("Site", (Handler,), {"cdn": cdn})) as address:
        yield f"{address}/"
