"""Documents -> manifests, each with the place where it was written.

What is read is bounded in depth and size, so that no file can bring the process down. It knows nothing of what the kinds mean."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from extender.api.errors import PumiceError, nearest
from extender.api.meta import KINDS, kind_of
from extender.ctl.found import Faults, Found, Refused
from extender.ctl.reading import STDIN, contents, documents

_DEEPEST = 100  # levels; a pod template in a JobFlow needs 20
_LARGEST = 2_000_000  # values in one document, aliases followed
# Kinds that charts bring along and that have no bearing on where pods go.
_PASSED_OVER = frozenset({
    "APIService", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "ControllerRevision",
    "CustomResourceDefinition", "Endpoints", "EndpointSlice", "FlowSchema", "HorizontalPodAutoscaler", "Ingress", "IngressClass",
    "MutatingWebhookConfiguration", "PodTemplate", "PriorityLevelConfiguration", "Role", "RoleBinding",
    "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttachment",
})  # fmt: skip
_PASSED_GROUPS = ("k8s.io", "apps", "autoscaling", "extensions", "v1")
# Kinds of Kubernetes that do have a bearing, and what is missed without them.
_MISSED = {"RuntimeClass": "its pods get no overhead and no node selector"}
# Files of which other programs make manifests.
_SOURCES = dict.fromkeys(("kustomization.yaml", "kustomization.yml"), "kubectl kustomize FOLDER | pumice run -") | dict.fromkeys(
    ("Chart.yaml", "values.yaml"), "helm template FOLDER | pumice run -"
)
_GROUPS = frozenset(kind.api_version.rpartition("/")[0] for kind in KINDS)
_ALIKE = 0.85  # groups as near as this are slips of the pen


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """All that the files hold. `passed_over`: kind -> how many objects of it were left out, being of no account here.

    `foreign`: objects of kinds that nobody here plays, though they may matter."""

    found: Sequence[Found]
    passed_over: Counter[str]
    foreign: Sequence[Found]

    def warnings(self) -> Iterator[str]:
        """A line for each foreign kind, which names the first of it."""
        count = Counter(_gvk(each) for each in self.foreign)
        for first in {_gvk(each): each for each in reversed(self.foreign)}.values():
            version, kind = _gvk(first)
            more = f" (and {count[version, kind] - 1} more of it)" if count[version, kind] > 1 else ""
            missed = f": {_MISSED[kind]}" if kind in _MISSED else ""
            yield f"{first.where}: {first.subject}: '{kind}' of '{version}' is not played here, passed over{more}{missed}"


def load(paths: Iterable[str], faults: Faults | None = None, option: str = "") -> Loaded:
    """Files, folders (all below them, by name) and `-`. What is wrong goes to `faults`, or is raised where there are none.

    It is raised as well where files cannot be read: UsageError, which names the `option` that named them. Refused is for what
    was read."""
    named, gathered = list(paths), faults if faults is not None else Faults()
    found: list[Found] = []
    foreign: list[Found] = []
    passed_over: Counter[str] = Counter()
    for each in _all_objects(named, gathered, option):
        if _is_played(each):
            found.append(each)
        elif _has_no_bearing(each):
            passed_over[each.manifest["kind"]] += 1
        else:
            foreign.append(each)
    if gathered.unreadable or not found or faults is None:
        gathered.tell()
    if not found:
        files = ", ".join("standard input" if path == STDIN else path for path in named)
        others = ", ".join(sorted({kind for _, kind in map(_gvk, foreign)} | passed_over.keys()))
        raise Refused(f"no manifests in {files}" + (f" that are played here, only {others}" if others else ""))
    return Loaded(found, passed_over, foreign)


def _all_objects(paths: Iterable[str], faults: Faults, option: str) -> Iterator[Found]:
    for path in paths:
        with faults.gathered(option):
            for source, content in contents(path):
                with faults.gathered(option):
                    for number, document in documents(source, content):
                        place = Found({}, source, number)
                        with faults.gathered():
                            _bound(place, document)
                            yield from _objects(place, document, faults)


def _bound(place: Found, document: object) -> None:
    """Raises Refused where the document is deeper or larger than any manifest is. Aliases are followed."""
    level, count = [document], 0
    for _ in range(_DEEPEST):
        level = list(islice(chain.from_iterable(map(_values, level)), _LARGEST - count + 1))
        count += len(level)
        if count > _LARGEST:
            raise place.refuse(f"more than {_LARGEST:,} values; a manifest of this size cannot be meant")
        if not level:
            return
    raise place.refuse(f"nested more than {_DEEPEST} levels deep")


def _values(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _objects(place: Found, document: object, faults: Faults) -> Iterator[Found]:
    """The document itself, or the items of a List."""
    if not isinstance(document, dict):
        raise place.refuse(f"a manifest is a map with apiVersion, kind and metadata, not {_sort(document)}")
    found = Found(document, place.source, place.document, place.item)
    kind = document.get("kind")
    if "kind" not in document and {"actions", "tiers"} & document.keys():
        raise found.refuse("this is a scheduler.conf; give it with --conf")
    tool = _SOURCES.get(Path(place.source).name)
    if tool is not None and not ("metadata" in document and "kind" in document):
        raise found.refuse(f"this is what manifests are made of; give what comes of it: {tool}")
    for field in ("apiVersion", "kind"):
        if not isinstance(document.get(field), str) or not document[field]:
            raise found.refuse(f"{field}: " + ("missing" if not document.get(field) else "must be text"))
    items = document.get("items")
    if not str(kind).endswith("List") or "spec" in document:
        yield _checked(found)
        return
    if not isinstance(items, list):
        raise found.refuse("items: missing" if items is None else "items: must be a list")
    for i, item in enumerate(items):
        inside = f"{place.item}.items[{i}]" if place.item else f"items[{i}]"
        if isinstance(item, dict) and kind != "List":  # the items of a PodList need not say what they are
            item = {"apiVersion": document["apiVersion"], "kind": str(kind).removesuffix("List"), **item}
        with faults.gathered():
            yield from _objects(Found({}, place.source, place.document, inside), item, faults)


def _checked(found: Found) -> Found:
    """What every rule after this one takes for granted."""
    if not _is_played(found):
        _check_slip(found)
    meta = found.manifest.get("metadata")
    if not isinstance(meta, dict):
        raise found.refuse("metadata: missing" if meta is None else f"metadata: must be a map, not {_sort(meta)}")
    for field in ("name", "namespace", "generateName"):
        if field in meta and not isinstance(meta[field], str | None):
            raise found.refuse(f"metadata.{field}: must be text, not {_sort(meta[field])}")
    for field in ("labels", "annotations"):
        values = meta.get(field)
        if values is not None and not isinstance(values, dict):
            raise found.refuse(f"metadata.{field}: must be a map, not {_sort(values)}")
        for key, value in (values or {}).items():
            if not isinstance(value, str):
                raise found.refuse(f"metadata.{field}[{key}]: must be text in quotes, not {_sort(value)}")
    for field in ("spec", "status"):
        if field in found.manifest and not isinstance(found.manifest[field], dict | None):
            raise found.refuse(f"{field}: must be a map, not {_sort(found.manifest[field])}")
    return found


def _sort(value: object) -> str:
    """The sort of a value in plain words, with the value where it is short."""
    if value is None:
        return "nothing"
    if isinstance(value, dict | list):
        return "a map" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return "text"
    return f"{str(value).lower()}"


# --- kinds --------------------------------------------------------------------------------------------------------------


def _gvk(found: Found) -> tuple[str, str]:
    return str(found.manifest["apiVersion"]), str(found.manifest["kind"])


def _is_played(found: Found) -> bool:
    try:
        kind_of(found.manifest)
    except PumiceError:
        return False
    return True


def _has_no_bearing(found: Found) -> bool:
    version, kind = _gvk(found)
    return kind in _PASSED_OVER and version.split("/")[0].endswith(_PASSED_GROUPS)


def _check_slip(found: Found) -> None:
    """Raises Refused where another version or another spelling must be meant: what is foreign has a group of its own."""
    version, kind = _gvk(found)
    group = version.rpartition("/")[0]
    akin = group in _GROUPS or group.endswith("volcano.sh") or difflib.get_close_matches(group, _GROUPS, n=1, cutoff=_ALIKE)
    served = [each.api_version for each in KINDS if each.name == kind]
    if kind in _MISSED or _has_no_bearing(found) or not (akin or (served and group.endswith(".k8s.io"))):
        return
    if served:
        raise found.refuse(f"apiVersion: {kind} is served as {' and '.join(served)}, not as '{version}'")
    near = nearest(kind, [each.name for each in KINDS])
    if "did you mean" in near:
        raise found.refuse(f"kind: no kind '{kind}' of '{version}' is played here{near}")
