"""Security contexts of pods and containers.

Source: kubernetes v1.36.1, validation.go, ValidateSecurityContext, validatePodSpecSecurityContext, validateHostUsers,
validateWindowsHostProcessPod, validateLinux, validateWindows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from extender.api.checks import (
    DNS_SUBDOMAIN,
    ID,
    SYSCTL_NAME,
    Faults,
    apply,
    apply_each,
    inner_path,
    one_of,
    optional,
    repeated,
    required,
)
from extender.api.errors import Fault
from extender.api.meta import Json

_PROFILES = {"seccompProfile": ("Localhost", "RuntimeDefault", "Unconfined"),
             "appArmorProfile": ("Localhost", "RuntimeDefault", "Unconfined")}  # fmt: skip
_NET, _IPC = ("net.",), ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")
_NETBIOS = re.compile(r'[^\\/:*?"<>|.\x00-\x1f][^\\/:*?"<>|\x00-\x1f]{0,14}')
_DNS_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DNS_DOMAIN = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*")
_LINUX_ONLY = ("seLinuxOptions", "seccompProfile", "appArmorProfile", "runAsUser", "runAsGroup")
_LINUX_CONTAINER = ("capabilities", "readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation", "procMount")
_LINUX_POD = ("fsGroup", "fsGroupChangePolicy", "sysctls", "supplementalGroups", "supplementalGroupsPolicy",
              "seLinuxChangePolicy")  # fmt: skip


def container_security_faults(security: Json, path: str, host_users: bool) -> Faults:
    yield from apply({"runAsUser": ID, "runAsGroup": ID, "procMount": one_of("Default", "Unmasked")}, security, path)
    yield from _profile_faults(security, path)
    yield from _windows_faults(security.get("windowsOptions", {}), f"{path}.windowsOptions")
    if security.get("procMount") == "Unmasked" and host_users:
        yield Fault(f"{path}.procMount", "Unmasked needs hostUsers: false in the pod")
    if security.get("allowPrivilegeEscalation") is False:
        if security.get("privileged"):
            yield Fault(f"{path}.allowPrivilegeEscalation", "cannot be false where privileged is true")
        if "CAP_SYS_ADMIN" in security.get("capabilities", {}).get("add", []):
            yield Fault(f"{path}.allowPrivilegeEscalation", "cannot be false where the capability CAP_SYS_ADMIN is added")


def pod_security_faults(spec: Json, path: str) -> Faults:
    security, at = spec.get("securityContext", {}), f"{path}.securityContext"
    yield from apply({
        "fsGroup": ID, "runAsUser": ID, "runAsGroup": ID, "fsGroupChangePolicy": one_of("OnRootMismatch", "Always"),
        "supplementalGroupsPolicy": one_of("Merge", "Strict"), "seLinuxChangePolicy": one_of("Recursive", "MountOption"),
    }, security, at)  # fmt: skip
    yield from apply_each(ID, security.get("supplementalGroups", []), f"{at}.supplementalGroups")
    yield from _profile_faults(security, at)
    yield from _windows_faults(security.get("windowsOptions", {}), f"{at}.windowsOptions")
    yield from _sysctl_faults(security.get("sysctls", []), spec, f"{at}.sysctls")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        yield Fault(f"{path}.shareProcessNamespace", "cannot be combined with hostPID")
    if spec.get("hostUsers") is False:
        yield from _user_namespace_faults(spec, path)
    yield from _host_process_faults(spec, path)
    yield from _os_faults(spec, path)


def _profile_faults(security: Json, path: str) -> Faults:
    for name, kinds in _PROFILES.items():
        profile, at = security.get(name), f"{path}.{name}"
        if profile is None:
            continue
        yield from required(profile, at, "type")
        yield from apply({"type": optional(one_of(*kinds))}, profile, at)
        local = profile.get("localhostProfile")
        if profile.get("type") == "Localhost":
            if not local or local != local.strip():
                yield Fault(f"{at}.localhostProfile", "type Localhost needs the profile's name")
            elif name == "seccompProfile":
                yield from apply({"localhostProfile": inner_path}, profile, at)
        elif local is not None:
            yield Fault(f"{at}.localhostProfile", "goes with type Localhost only")


def _windows_faults(options: Json, path: str) -> Faults:
    yield from apply({"gmsaCredentialSpecName": DNS_SUBDOMAIN, "gmsaCredentialSpec": _credential, "runAsUserName": _windows_user},
                     options, path)  # fmt: skip


def _credential(value: str) -> str:
    return "" if 0 < len(value.encode()) <= 64 * 1024 else "must hold from 1 to 65536 bytes"


def _windows_user(value: str) -> str:
    """USER or DOMAIN\\USER; a domain is a NetBIOS or a DNS name."""
    domain, slash, user = value.rpartition("\\")
    known = not slash or (len(domain) <= 256 and (_NETBIOS.fullmatch(domain) or _DNS_DOMAIN.fullmatch(domain)))
    good = 0 < len(user) <= 104 and not re.fullmatch(r"[. ]+", user) and not re.search(r'["/:;|=,+*?<>@\[\]\x00-\x1f\x7f]', user)
    return "" if known and good else f"'{value}' is not a user of Windows (USER or DOMAIN\\USER)"


def _sysctl_faults(sysctls: list[Json], spec: Json, path: str) -> Faults:
    for index, sysctl in enumerate(sysctls):
        name = sysctl.get("name", "")
        yield from required(sysctl, f"{path}[{index}]", "name")
        yield from apply({"name": optional(SYSCTL_NAME)}, sysctl, f"{path}[{index}]")
        for host, prefixes in (("hostNetwork", _NET), ("hostIPC", _IPC)):
            if spec.get(host) and name.replace("/", ".").startswith(prefixes):
                yield Fault(f"{path}[{index}].name", f"'{name}' cannot be set with {host}: it would change the node")
    yield from repeated((sysctl.get("name") for sysctl in sysctls), path, "name")


def _user_namespace_faults(spec: Json, path: str) -> Faults:
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(name):
            yield Fault(f"{path}.{name}", "cannot be combined with hostUsers: false")
    for at, container in _containers(spec, path):
        if container.get("volumeDevices"):
            yield Fault(f"{at}.volumeDevices", "cannot be combined with hostUsers: false")


def _host_process_faults(spec: Json, path: str) -> Faults:
    """Windows host processes: all containers or none, and on the host's network."""
    default = spec.get("securityContext", {}).get("windowsOptions", {}).get("hostProcess")
    marks = []
    for at, container in _containers(spec, path):
        own = container.get("securityContext", {}).get("windowsOptions", {}).get("hostProcess")
        where = f"{at}.securityContext.windowsOptions.hostProcess"
        if own is not None and default is not None and own != default:
            yield Fault(where, "must be as in the pod's securityContext")
        marks.append(bool(default if own is None else own))
    if any(marks) and not all(marks):
        yield Fault(path, "hostProcess must hold for all containers or for none")
    if any(marks) and not spec.get("hostNetwork"):
        yield Fault(f"{path}.hostNetwork", "must be true with hostProcess containers")


def _os_faults(spec: Json, path: str) -> Faults:
    if "os" not in spec:
        return
    name = spec["os"].get("name", "")
    yield from required(spec["os"], f"{path}.os", "name")
    yield from apply({"name": optional(one_of("linux", "windows"))}, spec["os"], f"{path}.os")
    owners = [(path, spec, _LINUX_POD), *((at, container, _LINUX_CONTAINER) for at, container in _containers(spec, path))]
    for at, owner, extra in owners:
        security = owner.get("securityContext", {})
        foreign = {"linux": ("windowsOptions",), "windows": (*_LINUX_ONLY, *extra)}.get(name, ())
        for field in foreign:
            if field in security:
                yield Fault(f"{at}.securityContext.{field}", f"cannot be set for a pod of {name}")
    if name == "windows":
        for field in ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace", "resources"):
            if spec.get(field) not in (None, False) or (field in ("hostUsers", "shareProcessNamespace") and field in spec):
                yield Fault(f"{path}.{field}", "cannot be set for a pod of windows")


def _containers(spec: Json, path: str) -> Iterator[tuple[str, Json]]:
    for name in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(name, [])):
            yield f"{path}.{name}[{index}]", container
