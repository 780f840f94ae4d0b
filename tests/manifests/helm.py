"""The helm that the tests run, and what the chart becomes with it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from extender.api.meta import Json
from tests.manifests.reading import CHART, documents

AS_IN_BASE = ("--namespace=volcano-system", "--set=fullnameOverride=volcano")  # names as `kubectl apply -k` gives them
NO_CRDS = "--set=crds.install=false"


class Helm:
    """`environ`: what the program finds in its environment; with a KUBECONFIG it works on that cluster, and where it fails
    `plight` says what is to be seen there: helm itself tells only that it has waited in vain."""

    def __init__(self, program: Path, environ: Mapping[str, str], plight: Callable[[], str] = lambda: "") -> None:
        self._program, self._environ, self._plight = program, dict(environ), plight
        self._rendered = cache(self._render)

    def __call__(self, *words: str) -> str:
        """What it says. Fails the test where it fails."""
        done = self.tried(*words)
        assert done.returncode == 0, f"helm {words[0]}: {done.stderr}{self._plight()}"
        return done.stdout

    def tried(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self._program, *words], env=self._environ, capture_output=True, text=True, check=False)

    def rendered(self, *flags: str, release: str = "volcano") -> tuple[Json, ...]:
        """The objects of a release. Not to be changed."""
        return self._rendered(release, *flags)

    def _render(self, release: str, *flags: str) -> tuple[Json, ...]:
        return tuple(documents(self("template", release, str(CHART), *flags)))
