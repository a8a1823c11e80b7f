"""Build the book, serve it on this machine, and open it in the browser."""

import http.server
import os
import sys
import threading
import webbrowser
from contextlib import contextmanager
from functools import partial

from tools import setup

SITE = setup.ROOT / "_build" / "html"
FIRST_PORT = 8000


class Handler(http.server.SimpleHTTPRequestHandler):
    """Plain files, not kept by the browser: a rebuilt page shows at the next reload."""

    protocol_version = "HTTP/1.1"

    def end_headers(self):
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    allow_reuse_address = os.name != "nt"  # on Windows it would share a port in use

    def handle_error(self, request, client_address):
        """A reader who leaves a page while it loads is not an error."""


def server(folder, port=0, handler=Handler):
    """A server of the files of a folder, on this machine only; port 0 is any free one."""
    return Server(("127.0.0.1", port), partial(handler, directory=str(folder)))


@contextmanager
def running(folder, handler=Handler):
    """The address of a folder, without a slash at its end: served as long as the block lasts."""
    with server(folder, handler=handler) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{site.server_port}"
        finally:
            site.shutdown()


def open_port():
    asked = os.environ.get("PORT")
    if asked:
        try:
            return server(SITE, int(asked))
        except (OSError, OverflowError, ValueError):
            raise setup.Stop(
                f"Port {asked} cannot be used (taken, or not a port): name another, "
                "as in 'make serve PORT=8765', or none."
            ) from None
    for port in range(FIRST_PORT, FIRST_PORT + 20):
        try:
            return server(SITE, port)
        except OSError:
            continue
    return server(SITE)


def has_screen():
    if os.environ.get("CI") or os.environ.get("SSH_CONNECTION"):
        return False
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def main():
    failed = setup.build_book()
    if failed:
        return failed
    with open_port() as site:
        address = f"http://localhost:{site.server_port}/"
        setup.say(f"The book is at {address} (Ctrl-C ends it)")
        if has_screen():
            webbrowser.open(address)
        try:
            site.serve_forever()
        except KeyboardInterrupt:
            setup.say("\nEnded.")
    return 0
