"""The Containerfile, as far as it can be judged without building it."""

from __future__ import annotations

import tomllib

from tests.manifests.reading import MANIFESTS, installed, pods

ROOT = MANIFESTS.parent
LINES = [line for line in (ROOT / "Containerfile").read_text().splitlines() if line and not line.startswith("#")]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_everything_that_is_packed_gets_into_the_build() -> None:
    copied = {word for line in LINES if line.startswith("COPY ") and "--from" not in line for word in line.split()[1:-1]}
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {*wheel["packages"], *wheel["force-include"], "pyproject.toml", PROJECT["project"]["readme"],
            *PROJECT["project"]["license-files"]} == copied  # fmt: skip
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert let_in == copied


def test_it_runs_as_the_user_of_the_pods() -> None:
    (user,) = [line.split()[1] for line in LINES if line.startswith("USER ")]
    ids = {(spec["securityContext"]["runAsUser"], spec["securityContext"]["runAsGroup"]) for _, spec in pods(installed())}
    assert ids == {tuple(int(part) for part in user.split(":"))}


def test_its_version_is_that_of_the_distribution() -> None:
    version = PROJECT["project"]["version"]
    assert any(f'image.version="{version}"' in line for line in LINES)


def test_no_command_goes_through_a_shell() -> None:
    """In JSON form; none is needed when the image is built either."""
    assert all(line.split(" ", 1)[1].startswith("[") for line in LINES if line.split(" ", 1)[0] in ("RUN", "CMD", "ENTRYPOINT"))
