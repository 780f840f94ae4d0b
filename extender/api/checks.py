"""The small questions admission asks of a value, as tables: a check answers "" or says what is wrong and what to do.

Source of the formats: k8s.io/apimachinery v0.36.1, pkg/util/validation/validation.go."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from extender.api import quantity
from extender.api.decode import child
from extender.api.errors import Fault, nearest
from extender.api.formats import is_dns_label, is_dns_subdomain, is_label_key, is_label_value
from extender.api.meta import Json

Check = Callable[[Any], str]
Faults = Iterator[Fault]


@dataclass(frozen=True, slots=True)
class Format:
    """A check by form and length."""

    name: str
    holds: Callable[[str], object]
    longest: int
    rule: str

    def __call__(self, value: Any) -> str:
        text = str(value)
        if len(text) > self.longest:
            return f"'{text}' has {len(text)} characters, {self.name} may have at most {self.longest}"
        return "" if self.holds(text) else f"'{text}' is not {self.name}: use {self.rule}"


def _form(pattern: str) -> Callable[[str], object]:
    return re.compile(pattern).fullmatch


_LOWER = "lower case letters, digits and '-', beginning and ending with a letter or digit"
_WORD = "letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
_ENDLESS = 2**20

DNS_LABEL = Format("a DNS label", is_dns_label, 63, _LOWER)
DNS_SUBDOMAIN = Format("a DNS name", is_dns_subdomain, 253, f"parts of {_LOWER}, joined by '.'")
LABEL_VALUE = Format("a label value", is_label_value, 63, _WORD)
PLAIN_NAME = Format("a name", lambda text: "/" not in text and is_label_key(text), 63, _WORD)
ENV_NAME = Format("an environment variable's name", _form(r"(?!\.$|\.\.)[-._a-zA-Z][-._a-zA-Z0-9]*"), _ENDLESS,
                  "letters, digits, '_', '-' and '.', not beginning with a digit or '..'")  # fmt: skip
CONFIG_KEY = Format("a key", _form(r"(?!\.$|\.\.)[-._a-zA-Z0-9]+"), 253, "letters, digits, '-', '_' and '.'")
HEADER_NAME = Format("an HTTP header's name", _form(r"[-A-Za-z0-9]+"), _ENDLESS, "letters, digits and '-'")
PORT_NAME = Format("a port name", _form(r"(?=.*[a-z])(?!.*--)[a-z0-9]([-a-z0-9]*[a-z0-9])?"), 15,
                   f"{_LOWER}, with at least one letter and no '--'")  # fmt: skip
SYSCTL_NAME = Format("a sysctl's name", _form(r"[a-z0-9]([-_a-z0-9]*[a-z0-9])?([./][a-z0-9]([-_a-z0-9]*[a-z0-9])?)*"), 253,
                     "lower case words joined by '.' or '/'")  # fmt: skip


def qualified_name(value: Any) -> str:
    """An optional DNS name and '/', then a name: label keys, resource names, annotation keys."""
    prefix, slash, name = str(value).rpartition("/")
    if slash and not is_dns_subdomain(prefix):
        return f"'{value}': the part before '/' must be a DNS name"
    return PLAIN_NAME(name)


def one_of(*words: str) -> Check:
    return lambda value: "" if value in words else f"'{value}' is not supported{nearest(str(value), words)}"


def between(low: int, high: int) -> Check:
    return lambda value: "" if low <= value <= high else f"is {value}, must be between {low} and {high}"


def at_least(low: int) -> Check:
    return lambda value: "" if value >= low else f"is {value}, must be at least {low}"


def optional(check: Check) -> Check:
    """An empty text or a zero counts as missing: what is no pointer in Go."""
    return lambda value: check(value) if value else ""


def is_ip(value: Any) -> str:
    """Without a zone, and not IPv4 in the clothes of IPv6, which programs read differently."""
    try:
        address = ipaddress.ip_address(str(value))
    except ValueError:
        return f"'{value}' is not an IP address"
    strange = isinstance(address, ipaddress.IPv6Address) and (address.scope_id is not None or address.ipv4_mapped)
    return f"'{value}' must be a plain IPv4 or IPv6 address" if strange else ""


PORT_NUMBER = between(1, 65535)
NOT_NEGATIVE = at_least(0)
FILE_MODE = between(0, 0o777)
ID = between(0, 2**31 - 1)


def port_reference(value: Any) -> str:
    """A port's number, or the name of a container port."""
    return PORT_NUMBER(value) if isinstance(value, int) else PORT_NAME(value)


def inner_path(value: Any) -> str:
    """A path that stays below where it is put."""
    if str(value).startswith("/"):
        return f"'{value}' must be a relative path"
    return no_backsteps(value)


def no_backsteps(value: Any) -> str:
    return f"'{value}' must not contain '..'" if ".." in str(value).split("/") else ""


def file_path(value: Any) -> str:
    """Where a key of a volume becomes a file: names with '..' in front belong to the kubelet."""
    reserved = str(value).startswith("..") and not str(value).startswith("../")
    return f"'{value}' must not begin with '..'" if reserved else inner_path(value)


def apply(table: Mapping[str, Check], obj: Json, path: str) -> Faults:
    """Each check of the table on the field it is written for, where the field is there."""
    for name, check in table.items():
        wrong = check(obj[name]) if name in obj else ""
        if wrong:
            yield Fault(child(path, name), wrong)


def apply_each(check: Check, items: Iterable[Any], path: str) -> Faults:
    for index, item in enumerate(items):
        wrong = check(item)
        if wrong:
            yield Fault(f"{path}[{index}]", wrong)


def required(obj: Json, path: str, *names: str) -> Faults:
    for name in names:
        if not obj.get(name):
            yield Fault(child(path, name), f"{name} is required")


def only_one(obj: Json, path: str, names: Iterable[str], *, needed: bool = True) -> Faults:
    """Of these fields one may be given, and must be where `needed`."""
    choices = tuple(names)
    given = [name for name in choices if name in obj]
    if needed and not given:
        yield Fault(path, f"one of {', '.join(choices)} is required")
    if len(given) > 1:
        yield Fault(path, f"only one of {', '.join(given)} may be given")


def repeated(values: Iterable[Any], path: str, field: str = "") -> Faults:
    """A value that an earlier item of the list has too; missing ones are not compared."""
    first: dict[Any, int] = {}
    for index, value in enumerate(values):
        if value in (None, ""):
            continue
        if value in first:
            here, there = (f"{path}[{at}].{field}" if field else f"{path}[{at}]" for at in (index, first[value]))
            yield Fault(here, f"'{value}' duplicates {there}; give it another value")
        first.setdefault(value, index)


def label_faults(labels: Mapping[str, str], path: str) -> Faults:
    for key, value in labels.items():
        for wrong in filter(None, (qualified_name(key), LABEL_VALUE(value))):
            yield Fault(f"{path}[{key}]", wrong)


def annotation_faults(annotations: Mapping[str, str], path: str) -> Faults:
    for key in annotations:
        wrong = qualified_name(key.lower())
        if wrong:
            yield Fault(f"{path}[{key}]", wrong)
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > 256 * 1024:
        yield Fault(path, f"{size} bytes in all, at most {256 * 1024} are allowed")


def selector_faults(selector: Json, path: str, operators: Sequence[str] = ("In", "NotIn", "Exists", "DoesNotExist")) -> Faults:
    """A label selector: keys, values, and operators that agree with their values."""
    yield from label_faults(selector.get("matchLabels", {}), f"{path}.matchLabels")
    for index, line in enumerate(selector.get("matchExpressions", ())):
        yield from requirement_faults(line, f"{path}.matchExpressions[{index}]", operators)


def requirement_faults(line: Json, path: str, operators: Sequence[str], *, free_values: bool = False) -> Faults:
    operator, values = line.get("operator", ""), line.get("values", [])
    if operator not in operators:
        yield Fault(f"{path}.operator", f"'{operator}' is not an operator{nearest(operator, operators)}")
    elif operator in ("In", "NotIn") and not values:
        yield Fault(f"{path}.values", f"{operator} needs at least one value")
    elif operator in ("Exists", "DoesNotExist") and values:
        yield Fault(f"{path}.values", f"{operator} takes no values")
    elif operator in ("Gt", "Lt") and len(values) != 1:
        yield Fault(f"{path}.values", f"{operator} needs exactly one value")
    yield from apply({"key": qualified_name}, {"key": line.get("key", "")}, path)
    if not free_values:
        yield from apply_each(LABEL_VALUE, values, f"{path}.values")


# --- amounts ----------------------------------------------------------------------------------------------------------------
_COUNTED = {"pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims",
            "services.nodeports", "services.loadbalancers"}  # fmt: skip


def is_native(resource: str) -> bool:
    """Kubernetes' own: without a domain, or below kubernetes.io."""
    return "/" not in resource or "kubernetes.io/" in resource


def is_extended(resource: str) -> bool:
    return not is_native(resource) and not resource.startswith("requests.") and not qualified_name(f"requests.{resource}")


def amount_fault(resource: str, amount: Any) -> str:
    """Amounts are not negative, and whole (to a thousandth, rounded up) where the resource is counted."""
    if quantity.nanos(amount) < 0:
        return f"is {amount}, must not be negative: give an amount >= 0"
    if (resource in _COUNTED or is_extended(resource)) and -(-quantity.nanos(amount) // 10**6) % 1000:
        return f"is {amount}, {resource} must be a whole number"
    return ""
