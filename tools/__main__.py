"""python -m tools COMMAND: the commands of the Makefile, with the standard library alone."""

import os
import shutil
import sys

if sys.version_info < (3, 11):  # noqa: UP036
    # Another Python may lie beside an old default one.
    for name in ("python3.13", "python3.12", "python3.11"):
        if shutil.which(name):
            os.execv(shutil.which(name), [name, "-m", "tools", *sys.argv[1:]])
    sys.exit(
        "Python 3.11 or newer is needed, and this is {}.{}: install one from "
        "https://www.python.org/downloads/".format(*sys.version_info)
    )

from tools import lint, serve, setup, test

COMMANDS = {
    "setup": setup.prepare,
    "book": setup.build_book,
    "serve": serve.main,
    "test": test.main,
    "test-slow": test.slow,
    "fuzz": test.fuzz,
    "bench": test.bench,
    "lint": lint.main,
    "clean": setup.clean,
}


def main():
    names = sys.argv[1:]
    if len(names) != 1 or names[0] not in COMMANDS:
        sys.exit("Say one of: " + ", ".join(COMMANDS))
    try:
        sys.exit(COMMANDS[names[0]]())
    except setup.Stop as reason:
        sys.exit(str(reason))
    except KeyboardInterrupt:
        sys.exit(130)


main()
