"""Case files: stories and recorded decisions kept outside this repository, one YAML document a file.

They are looked for in the folders of the environment variable PUMICE_CASES (separated by colons, relative ones from the
project's root); without it in ../shared/cases. The folders may be missing or read-only: nothing is ever written there."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "PUMICE_CASES"
DEFAULT = "../shared/cases"


def case_folders() -> list[Path]:
    """The folders that exist, in the order of PUMICE_CASES."""
    listed = os.environ.get(VARIABLE) or DEFAULT
    folders = [(ROOT / entry).resolve() for entry in listed.split(os.pathsep) if entry]
    return [folder for folder in folders if folder.is_dir()]


def case_files(subdir: str, pattern: str = "*.yaml") -> list[Path]:
    """All files of that folder of cases ("sessions", "reports" ...), sorted by name; empty where there are none."""
    return sorted(file for folder in case_folders() for file in (folder / subdir).glob(pattern))


def missing(subdir: str) -> str:
    """Why a test over `subdir` is skipped, and what to do about it."""
    return f"no cases '{subdir}': set {VARIABLE} to the folders that hold them (now {os.environ.get(VARIABLE) or DEFAULT})"


def load(path: Path) -> dict[str, Any]:
    """The document of one case file, parsed once a process; the caller may change what it gets."""
    return copy.deepcopy(_parse(path))


def tell(files: Sequence[str], verdict: Callable[[Mapping[str, Any]], tuple[str, list[str]]]) -> int:
    """Print what each case comes to, in a word, and what does not hold of it; 1 where anything does not."""
    failed = 0
    for name in files:
        case = load(Path(name).resolve())
        word, faults = verdict(case)
        print(f"{case['id']}: {word}")
        for fault in faults:
            print(f"    {fault}")
        failed += bool(faults)
    print(f"{len(files) - failed} of {len(files)} hold")
    return 1 if failed else 0


@cache
def _parse(path: Path) -> dict[str, Any]:
    document = yaml.load(path.read_bytes(), Loader=_LOADER)
    if not isinstance(document, dict):
        raise TypeError(f"{path}: a case file holds one mapping, not {type(document).__name__}")
    return document


# A YAML build without libyaml has only the slow loader; both read the same language.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
