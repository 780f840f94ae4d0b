"""One manifest and where it was written, and what is wrong with manifests: gathered, so that all of it is told in one go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from extender.api.errors import PumiceError, UsageError
from extender.api.meta import Json
from extender.ctl.reading import naming

MOST = 10  # faults that are told; who has mended them will see the others


class Refused(PumiceError):
    """An object that cannot be used, with the place where it was written."""

    def __init__(self, message: str, found: Found | None = None) -> None:
        super().__init__(message)
        self.found = found


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """One manifest and where it is: `document` counts from 1 within `source`, `item` is its place in a List."""

    manifest: Json
    source: str
    document: int
    item: str = ""

    @property
    def where(self) -> str:
        return f"{self.source}: document {self.document}" + (f", {self.item}" if self.item else "")

    @property
    def subject(self) -> str:
        """`Job default/train`, in the words of the manifest."""
        meta = self.manifest.get("metadata") or {}
        name = meta.get("name") or f"{meta.get('generateName') or ''}..."
        return f"{self.manifest.get('kind')} " + (f"{meta['namespace']}/{name}" if meta.get("namespace") else name)

    @property
    def as_found(self) -> bool:
        """A cluster has written it (`kubectl get -o yaml`): it is taken as it is."""
        return bool(self.manifest["metadata"].get("resourceVersion"))

    @property
    def name(self) -> str:
        """Its own; "" where it has none that can be read."""
        meta = self.manifest.get("metadata")
        name = meta.get("name") if isinstance(meta, dict) else None
        return name if isinstance(name, str) else ""

    def refuse(self, why: object) -> Refused:
        return Refused(f"{self.where}: {why}", self)


class Faults:
    """`names`: of the objects at fault. Who names one of them is not judged: what is there to say is said of the other."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._errors: list[Refused | UsageError] = []
        self._places: set[str] = set()

    def __len__(self) -> int:
        return len(self._errors)

    def __contains__(self, found: Found) -> bool:
        return found.where in self._places

    @property
    def unreadable(self) -> bool:
        """Files could not be read whole: nobody knows what stands in them."""
        return any(isinstance(error, UsageError) for error in self._errors)

    def add(self, error: Refused | UsageError) -> None:
        self._errors.append(error)
        if isinstance(error, Refused) and error.found is not None:
            self._places.add(error.found.where)
            self.names |= {error.found.name} - {""}

    @contextmanager
    def gathered(self, option: str = "") -> Iterator[None]:
        """What is refused within is kept, and the work goes on behind it. `option`: that which names the files."""
        try:
            with naming(option):
                yield
        except (Refused, UsageError) as error:
            self.add(error)

    def tell(self) -> None:
        """Raises all as one error, a line each, in the order of the documents; UsageError where there are only such."""
        if not self._errors:
            return
        lines = [str(error) for error in sorted(self._errors, key=_place)]
        rest = [f"... and {len(lines) - MOST:,} more"] if len(lines) > MOST else []
        sort = UsageError if all(isinstance(error, UsageError) for error in self._errors) else Refused
        raise sort("\n".join((*lines[:MOST], *rest)))


def _place(error: Refused | UsageError) -> tuple[str, int]:
    found = error.found if isinstance(error, Refused) else None
    return (found.source, found.document) if found is not None else ("", 0)
