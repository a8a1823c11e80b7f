"""Check the style of the code, the spelling of the text, and the workflows."""

from tools import setup

TEXT = ["index.md", "README.md", "CONTRIBUTING.md", "chapters", "attn_helpers", "sphinx_ext"]


def main():
    setup.prepare(tests=True)
    tool = setup.BIN
    workflows = sorted((setup.ROOT / ".github" / "workflows").glob("*.yml"))
    node = setup.npm_command()[0]
    actionlint = setup.NPM / "node_modules" / "@tktco" / "node-actionlint" / "build" / "cli.js"
    checks = {
        "code": [tool / "ruff", "check", "."],
        "format of the code": [tool / "ruff", "format", "--check", "."],
        "spelling": [tool / "codespell", *TEXT, "tests", "tools"],
        "workflows": [node, actionlint, *workflows],
    }
    failed = []
    for name, command in checks.items():
        setup.say(f"Checking the {name}")
        if setup.run(*command):
            failed.append(name)
    setup.say("Not in order: " + ", ".join(failed) if failed else "All in order.")
    return bool(failed)
