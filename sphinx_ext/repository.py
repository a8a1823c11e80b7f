"""Where the sources live, so that a fork's site links to the fork and a site of unknown origin links nowhere.

Asked in this order: the environment variables BOOK_REPOSITORY (`https://github.com/owner/name` or `owner/name`), BOOK_BRANCH and BOOK_URL
(where the site will stand); what GitHub's CI says of itself; the git remote `origin`. Branch `main` and, on GitHub, the address of its
Pages are the defaults. Binder and Colab need a public GitHub repository; for any other there is no button.
"""

import os
import re
import subprocess


def parse(address):
    """`owner/name` of a GitHub repository given as address, as ssh address or as owner/name; None for anything else."""
    match = re.fullmatch(
        r"(?:(?:https://|ssh://)?(?:[^@/]+@)?github\.com[/:])?([\w.-]+)/([\w.-]+?)(?:\.git)?/?",
        address.strip(),
    )
    return "/".join(match.groups()) if match else None


def origin(source):
    """The remote of a clone. A path on this machine is none."""
    command = ["git", "-C", str(source), "remote", "get-url", "origin"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:  # no git
        return ""
    return answer if "github.com" in answer else ""


def find(source, environ=os.environ):
    """What is known: `name`, `branch`, `url` (of the repository) and `site` (address of the site), each "" where not known."""
    name = parse(
        environ.get("BOOK_REPOSITORY") or environ.get("GITHUB_REPOSITORY") or origin(source) or ""
    )
    branch = environ.get("BOOK_BRANCH") or (
        environ.get("GITHUB_REF", "").removeprefix("refs/heads/")
    )
    if not branch or branch.startswith("refs/"):
        branch = "main"
    site = environ.get("BOOK_URL", "")
    if name and not site:
        owner, project = name.split("/")
        site = f"https://{owner.lower()}.github.io/" + (
            "" if project.lower() == f"{owner.lower()}.github.io" else f"{project}/"
        )
    return {
        "name": name or "",
        "branch": branch,
        "url": f"https://github.com/{name}" if name else "",
        "site": site,
    }


def links(repository, page, notebook):
    """Addresses of one page: in Binder, in Colab, in the editor. `page` is its source's path, `notebook` that of its .ipynb."""
    if not repository["name"]:
        return {}
    name, branch, url = repository["name"], repository["branch"], repository["url"]
    return {
        "repository": url,
        "edit": f"{url}/edit/{branch}/{page}",
        "binder": f"https://mybinder.org/v2/gh/{name}/{branch}?urlpath=lab/tree/{page}",
        # Colab opens .ipynb only: the publishing workflow keeps the notebooks on a branch of their own.
        "colab": f"https://colab.research.google.com/github/{name}/blob/notebooks/{notebook}",
    }
