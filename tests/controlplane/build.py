"""Builds the programs of a real control plane, and helm, from the Go module proxy, once, into a cache keyed by the go.sum files.

    python tests/controlplane/build.py        print where the programs are, building what is missing

KUBEBUILDER_ASSETS, where it is set, names a folder that has the control plane already; HELM, or PATH, a helm. Known times on two
cores: kube-apiserver 226 s, kube-controller-manager 100 s, helm 100 s, kwok 81 s, etcd 45 s, kube-scheduler 40 s."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

KUBERNETES = "v1.36.1"
_HERE = Path(__file__).parent / "binaries"
_VERSION_PACKAGE = "k8s.io/component-base/version"


class Program(NamedTuple):
    name: str
    module: str  # folder below binaries/ with its go.mod
    package: str


PROGRAMS = (
    Program("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
    Program("kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
    Program("kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    Program("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    Program("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
    Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
)
HELM = Program("helm", "helm", "helm.sh/helm/v4/cmd/helm")
Say = Callable[[str], object]


class Unavailable(Exception):
    """There are no programs and nothing to build them with; the message says what is missing."""


def programs(say: Say = lambda _: None) -> Path:
    """The folder that holds the control plane. Raises Unavailable where it can neither be found nor built."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        missing = [program.name for program in PROGRAMS if not (Path(assets) / program.name).exists()]
        if missing:
            raise Unavailable(f"KUBEBUILDER_ASSETS={assets} lacks {', '.join(missing)}")
        return Path(assets)
    if shutil.which("go") is None:
        raise Unavailable("no control plane: neither KUBEBUILDER_ASSETS is set nor is there a Go toolchain to build one")
    return _built(PROGRAMS, say)


def helm(say: Say = lambda _: None) -> Path:
    """The program. Raises Unavailable likewise."""
    found = os.environ.get("HELM") or shutil.which("helm")
    if found:
        return Path(found)
    if shutil.which("go") is None:
        raise Unavailable("no helm: it is neither on PATH nor named by HELM, nor is there a Go toolchain to build one")
    return _built([HELM], say) / HELM.name


def _built(wanted: Sequence[Program], say: Say) -> Path:
    folder = _cache() / _fingerprint(wanted)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:  # one builder at a time, also across test processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        unbuilt = [program for program in wanted if not (folder / program.name).exists()]
        for number, program in enumerate(unbuilt, 1):
            say(f"building {program.name} ({number} of {len(unbuilt)})")
            _build(program, folder)
    return folder


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pumice" / "controlplane"


def _fingerprint(wanted: Sequence[Program]) -> str:
    digest = hashlib.sha256(KUBERNETES.encode())
    for module in sorted({program.module for program in wanted}):
        digest.update((_HERE / module / "go.sum").read_bytes())
    return digest.hexdigest()[:16]


def _build(program: Program, folder: Path) -> None:
    version = f"-X {_VERSION_PACKAGE}.gitVersion={KUBERNETES} -X {_VERSION_PACKAGE}.gitMajor=1 -X {_VERSION_PACKAGE}.gitMinor=36"
    unfinished = folder / f".{program.name}"
    command = ["go", "build", "-trimpath", "-ldflags", f"-s -w {version}", "-o", str(unfinished), program.package]
    static = os.environ | {"CGO_ENABLED": "0"}
    done = subprocess.run(command, cwd=_HERE / program.module, env=static, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"building {program.name} failed:\n{done.stderr[-2000:]}")
    unfinished.rename(folder / program.name)


if __name__ == "__main__":
    try:
        for found in (programs, helm):
            print(found(lambda line: print(line, file=sys.stderr, flush=True)))
    except Unavailable as error:
        sys.exit(f"error: {error}")
