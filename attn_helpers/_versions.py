"""Says which package is too old or missing, before an import fails with something less helpful."""

import re
import warnings
from importlib import metadata

NEEDED = {  # as pyproject.toml has it; an install that was cut off or made with --no-deps may lack one
    "torch": "2.4",
    "numpy": "1.25",
    "matplotlib": "3.8",
    "seaborn": "0.13",
    "ipywidgets": "8.1",
    "anywidget": "0.9.18",
    "jaxtyping": "0.3",
}
WANTED = {"jupyterlab": "4.2", "notebook": "7.2"}  # may be here without being the reader's client


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _fault(package: str, least: str) -> str | None:
    """What is wrong with the installed version, or None; a package that is not there is at ''."""
    try:
        found = metadata.version(package)
    except metadata.PackageNotFoundError:
        found = ""
    if found and _numbers(found) >= _numbers(least):
        return None
    came = f"found {found}" if found else "found none"
    return f"{package} {least} or newer, {came}: run  pip install -U '{package}>={least}'"


def check() -> None:
    """Raise ImportError for a package that the helpers cannot do without; warn of an old client."""
    for package, least in NEEDED.items():
        if fault := _fault(package, least):
            raise ImportError(f"attn_helpers needs {fault}  and restart the kernel")
    for package, least in WANTED.items():
        fault = _fault(package, least)
        if fault and "found none" not in fault:
            warnings.warn(f"explorers may not show: they want {fault}", stacklevel=3)
