"""The shape of the project: arrows between packages, what the wheel installs, commands that start, a README that is true."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("extender", "webhook", "controller", "certs")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WHEEL = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]


@cache
def sources() -> tuple[Path, ...]:
    return tuple(file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py")))


@cache
def tracked() -> tuple[Path, ...]:
    """Files under version control; outside a checkout (a source archive) whatever is there and not made by a tool."""
    answer = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if answer.returncode == 0:
        return tuple(ROOT / name for name in answer.stdout.split("\0") if name and (ROOT / name).is_file())
    made = {".venv", "__pycache__", "build", "dist"}
    files = (file for file in ROOT.rglob("*") if file.is_file())
    return tuple(file for file in files if not made & set(file.relative_to(ROOT).parts) and "_cache" not in str(file))


def imported(file: Path) -> Iterator[str]:
    """Top-level names that a module imports, those inside functions too."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def test_imports_point_down() -> None:
    """The arrows are in pyproject.toml, [tool.importlinter]."""
    linter = Path(sys.executable).with_name("lint-imports")
    answer = subprocess.run([linter, "--no-cache", "--no-logo"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_the_wheel_has_only_the_documented_top_level_names() -> None:
    assert set(WHEEL["packages"]) == {name for name in PACKAGES if (ROOT / name).is_dir()}
    assert {target.partition("/")[0] for target in WHEEL.get("force-include", {}).values()} <= set(PACKAGES)


def test_every_package_says_what_it_is_and_imports_nothing() -> None:
    for package in WHEEL["packages"]:
        module = ast.parse((ROOT / package / "__init__.py").read_text())
        assert ast.get_docstring(module), f"{package}/__init__.py has no map of the package"
        assert len(module.body) == 1, f"{package}/__init__.py holds more than its docstring"


# Elsewhere the registration is the map (plugins, actions, routes), or the folder is one thing.
MAPPED = (
    "extender", "extender/api", "extender/cluster", "extender/core", "extender/core/dra", "extender/core/kube",
    "extender/core/volumes", "extender/ctl", "extender/metrics", "extender/testing", "extender/verbs", "controller",
    "controller/job", "webhook", "certs",
)  # fmt: skip


@pytest.mark.parametrize("package", MAPPED)
def test_the_map_of_a_package_is_whole_and_true(package: str) -> None:
    """Its docstring names every module, and none that is gone."""
    text = ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text())) or ""
    there = {file.stem for file in (ROOT / package).glob("*.py") if file in tracked()} - {"__init__"}
    gone = {name for name in re.findall(r"[\w/]+\.py", text) if not [*(ROOT / package).rglob(name), *ROOT.glob(name)]}
    assert (there - set(re.findall(r"\w+", text)), gone) == (set(), set())


def test_what_is_imported_is_declared() -> None:
    """Every distribution that the packages import is a dependency, in the list or in an extra."""
    extras = [wanted for listed in PROJECT["optional-dependencies"].values() for wanted in listed]
    declared = {re.split(r"[\[<>=!~; ]", wanted)[0].lower().replace("_", "-") for wanted in [*PROJECT["dependencies"], *extras]}
    providers = importlib.metadata.packages_distributions()
    names = {name for file in sources() for name in imported(file)} - set(sys.stdlib_module_names) - set(PACKAGES)
    missing = {name for name in names if not {p.lower().replace("_", "-") for p in providers.get(name, [name])} & declared}
    assert not missing


def test_what_is_declared_is_imported() -> None:
    """Of what the packages need when they run. Python reads the zones of tzdata by itself."""
    distributions = importlib.metadata.packages_distributions()
    used = {p.lower().replace("_", "-") for file in sources() for name in imported(file) for p in distributions.get(name, ())}
    assert {re.split(r"[\[<>=!~; ]", wanted)[0] for wanted in PROJECT["dependencies"]} - used == {"tzdata"}


@pytest.mark.parametrize("target", PROJECT["scripts"].values(), ids=PROJECT["scripts"])
def test_commands_start(target: str) -> None:
    """Every console script's module can be imported by itself and holds its function."""
    module, _, function = target.partition(":")
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"from {module} import {function}; assert callable({function})"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr


# What ties a file to one machine (containers may have /root/.ssh). In pieces, so that this file does not find itself.
FORBIDDEN = {
    "a folder of one machine": r"(?<!\w)/(?:" + r"work|farm|root(?!/\.ssh\b)|home/\w+)/[A-Za-z.]",
    "a package registry": r"(?:" + r"files\.pythonhosted|pypi|test\.pypi)\.org|(?:proxy|sum)" + r"\.golang\.org|registry\.npmjs",
}


@pytest.mark.parametrize("pattern", FORBIDDEN.values(), ids=FORBIDDEN)
def test_no_tracked_file_names(pattern: str) -> None:
    found = []
    for file in tracked():
        try:
            text = file.read_text()
        except UnicodeDecodeError:
            continue
        found += [f"{file.relative_to(ROOT)}: {match.group()}" for match in re.finditer(pattern, text)]
    assert not found


def test_no_module_has_a_name_that_says_nothing() -> None:
    vague = {"utils", "util", "common", "helpers", "helper", "misc"}
    assert not [str(file.relative_to(ROOT)) for file in sources() if vague & {part.removesuffix(".py") for part in file.parts}]


def paths_in(document: str, heading: str) -> list[str]:
    section = (ROOT / document).read_text().partition(heading)[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [path for row in rows for path in re.findall(r"`([\w/-]+[./][\w./-]+)`", row.split("|")[2])]


WHERE_IS = paths_in("README.md", "## Where is ...?")


def test_the_readme_has_a_where_is_table() -> None:
    assert len(WHERE_IS) >= 10


@pytest.mark.parametrize("path", WHERE_IS)
def test_the_readme_points_to_what_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("document", ["README.md", *sorted(f"docs/{file.name}" for file in (ROOT / "docs").glob("*.md"))])
def test_links_lead_somewhere(document: str) -> None:
    file = ROOT / document
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", file.read_text())
    assert not [target for target in targets if not (file.parent / target).exists()]


def test_the_reference_lists_every_switch_action_and_plugin() -> None:
    """docs/configuration.md holds what the scheduler knows, with the defaults it has."""
    from extender.actions import ACTIONS
    from extender.actions import LATER as LATER_ACTIONS
    from extender.core.extension_points import SWITCHES
    from extender.plugins import LATER as LATER_PLUGINS
    from extender.plugins import PLUGINS

    text = (ROOT / "docs" / "configuration.md").read_text()
    rows = dict(re.findall(r"^\| `([\w-]+)` \| ([^|]*) \|", text, flags=re.MULTILINE))
    assert {name: str(default).lower() for name, default in SWITCHES.items()} == {
        name: rows[name] for name in rows if name.startswith("enable") and name != "enqueue"
    }
    assert {*ACTIONS, *LATER_ACTIONS, *PLUGINS, *LATER_PLUGINS} <= set(rows)
