"""Random questions to a scheduler: a small cluster, what runs on it, one pod to place. The same seed asks the same again.

    questions(seed, count) -> dicts {"id", "nodes", "pods", "objects", "pod"}

They use all of what kube-scheduler's filters and scorers look at; storage is in volume_questions.py. Values come from small
pools, so that selectors match often and several rules meet in one question."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, TypeVar

from extender.api.meta import Json
from extender.testing.volume_questions import Storage

T = TypeVar("T")
_NAMESPACES = ("blue", "green", "red")
_APPS, _TIERS, _TEAMS = ("web", "db", "cache"), ("front", "back"), ("one", "two")
_HOST, _ZONE, _REGION, _RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "rack"
_IMAGES = tuple((f"registry.test/app{i}:v1", size * 1024 * 1024) for i, size in enumerate((15, 80, 400, 900, 2500)))
_BARE_IMAGES = (("registry.test/tool", 300 * 1024 * 1024), ("localhost:5000/tool", 700 * 1024 * 1024))
_DELETED = "2026-01-01T00:00:00Z"


def questions(seed: int, count: int) -> Iterator[Json]:
    """`count` questions; each has its own generator, so that one of them can be had alone."""
    for number in range(count):
        yield question(seed, number)


def question(seed: int, number: int) -> Json:
    maker = _Maker(Random(f"{seed}/{number}"))
    return {"id": f"{seed}/{number}", **maker.question()}


class _Maker:
    """One question. `affine`, `spread` and the like say how much of the question turns on which rule."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        themes = ("taints", "node affinity", "pod affinity", "spread", "ports", "images", "tight", "volumes")
        self.themes = set(rng.sample(themes, rng.randint(1, 4)))
        self.has_all = rng.random() < 0.6  # every node has some of each resource

    def maybe(self, chance: float, theme: str = "") -> bool:
        """True by chance; three times as likely where the question is about `theme`."""
        return self.rng.random() < (min(chance * 3, 0.9) if theme in self.themes else chance)

    def some(self, pool: Sequence[T], least: int = 0, most: int | None = None) -> list[T]:
        most = len(pool) if most is None else min(most, len(pool))
        return self.rng.sample(list(pool), self.rng.randint(least, most))

    def times(self, make: Callable[[], T], least: int, most: int) -> list[T]:
        return [make() for _ in range(self.rng.randint(least, most))]

    # --- the cluster --------------------------------------------------------------------------------------------------------

    def question(self) -> Json:
        nodes = [self.node(i) for i in range(self.rng.choice((1, 2, 3, 4, 5, 6, 8, 10, 14, 20)))]
        names = [node["metadata"]["name"] for node in nodes]
        size = self.rng.choice((0, 2, 5, 10, 20, 30, 40))
        pods = [self.running(i, self.rng.choice(names)) for i in range(size)]
        asked, objects = self.asked(names), self.objects()
        if self.maybe(0.1, "volumes"):
            storage = Storage(self.rng, names)
            storage.mount(asked, asked=True)
            for pod in pods:
                if self.maybe(0.3):
                    storage.mount(pod, asked=False)
            objects += storage.objects
        return {"nodes": nodes, "pods": pods, "objects": objects, "pod": asked}

    def node(self, i: int) -> Json:
        rng, name = self.rng, f"n{i}"
        labels = {_HOST: name} if not self.maybe(0.05) else {}
        for key, values, chance in (
            (_ZONE, ("z1", "z2", "z3"), 0.85), (_REGION, ("r1", "r2"), 0.5), (_RACK, ("1", "2", "3", "04", "-5", "x"), 0.5),
            ("disk", ("ssd", "hdd"), 0.5), ("gen", ("7", "10", "12", ""), 0.5),
        ):  # fmt: skip
            if rng.random() < chance:
                labels[key] = rng.choice(values) if not self.maybe(0.02) else ""
        if self.maybe(0.02):
            labels = {}
        elif self.maybe(0.02):
            labels[_HOST] = "n0"
        tight = "tight" in self.themes
        room: Json = {
            "cpu": rng.choice(("4", "8", "3500m") if tight else ("16", "32", "64")),
            "memory": rng.choice(("4Gi", "8Gi", "3000Mi") if tight else ("16Gi", "64Gi", "30000000Ki")),
            "pods": rng.choice(("3", "6", "110") if tight else ("110", "250")),
        }
        if self.has_all or self.maybe(0.3):
            room["nvidia.com/gpu"] = rng.choice(("0", "1", "4", "8"))
        if self.has_all or self.maybe(0.2):
            room["ephemeral-storage"] = rng.choice(("5Gi", "100Gi"))
        if self.has_all or self.maybe(0.1):
            room["example.com/widget"] = rng.choice(("1", "5"))
        if self.has_all or self.maybe(0.05):
            room["hugepages-2Mi"] = "512Mi"
        if self.maybe(0.02):
            del room[rng.choice(list(room))]
        node: Json = {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": {"allocatable": room, "capacity": room}}
        if self.maybe(0.01):
            del node["status"]["allocatable"]
        if self.maybe(0.04):
            node["spec"]["unschedulable"] = True
        taints = self.times(self.taint, 1, 3) if self.maybe(0.15, "taints") else []
        if taints:
            node["spec"]["taints"] = list({(t["key"], t["effect"]): t for t in taints}.values())
        if self.maybe(0.2, "images"):
            found = self.some(_IMAGES, 1) + [(f"{image}:latest", size) for image, size in self.some(_BARE_IMAGES)]
            node["status"]["images"] = [{"names": [image, f"{image}-alias"], "sizeBytes": size} for image, size in found]
        return node

    def taint(self) -> Json:
        taint = {"key": self.rng.choice(("dedicated", "gpu", "node.kubernetes.io/unschedulable", "level"))}
        if self.maybe(0.7):
            taint["value"] = self.rng.choice(("one", "two", "3"))
        return {**taint, "effect": self.rng.choice(("NoSchedule", "NoExecute", "PreferNoSchedule", "PreferNoSchedule"))}

    def objects(self) -> list[Json]:
        spaces = self.some(_NAMESPACES, 1)
        found: list[Json] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}} for space in spaces]
        for namespace in found:
            if self.maybe(0.8):
                namespace["metadata"]["labels"] = {"team": self.rng.choice(_TEAMS), "kubernetes.io/metadata.name": "x"}
        for i in range(self.rng.choice((0, 0, 0, 1, 2, 3))):
            service: Json = {
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": f"s{i}", "namespace": self.rng.choice(_NAMESPACES)},
                "spec": {},
            }  # fmt: skip
            if self.maybe(0.9):
                service["spec"]["selector"] = self.rng.choice(
                    ({"app": self.rng.choice(_APPS)}, {"tier": self.rng.choice(_TIERS)}, {"app": "web", "tier": "front"}, {})
                )
            found.append(service)
        return found

    # --- pods -----------------------------------------------------------------------------------------------------------------

    def running(self, i: int, node: str) -> Json:
        pod = self.pod(f"r{i}", rich=self.maybe(0.25, "pod affinity"))
        pod["spec"]["nodeName"] = node
        pod["status"] = {"phase": self.rng.choice(("Running", "Running", "Pending"))}
        if self.maybe(0.08):
            pod["status"] |= self.resize(pod["spec"])
        if self.maybe(0.1):
            pod["metadata"] |= {"deletionTimestamp": _DELETED, "deletionGracePeriodSeconds": 30, "finalizers": ["x/y"]}
        return pod

    def resize(self, spec: Json) -> Json:
        """Containers that run with other requests than they ask for."""
        sizes = [{"cpu": cpu, "memory": memory} for cpu in ("200m", "2") for memory in ("100Mi", "2Gi")]
        states = [
            {"name": c["name"], "resources": {"requests": self.rng.choice(sizes)}, "allocatedResources": self.rng.choice(sizes)}
            for c in spec["containers"]
            if self.maybe(0.7)
        ]
        pending = {"type": "PodResizePending", "status": "True", "reason": self.rng.choice(("Infeasible", "Deferred"))}
        return {"containerStatuses": states, "conditions": [pending] if self.maybe(0.5) else []}

    def asked(self, names: list[str]) -> Json:
        pod = self.pod("asked", rich=True)
        spec = pod["spec"]
        if self.maybe(0.015):
            spec["nodeName"] = self.rng.choice([*names, "gone"])
        if self.maybe(0.15, "node affinity"):
            spec["nodeSelector"] = self.rng.choice(({"disk": "ssd"}, {_ZONE: "z1"}, {"disk": "hdd", _REGION: "r1"}, {}))
        if self.maybe(0.2, "node affinity"):
            spec.setdefault("affinity", {})["nodeAffinity"] = self.node_affinity(names)
        if self.maybe(0.3, "taints"):
            spec["tolerations"] = self.times(self.toleration, 1, 3)
        if self.maybe(0.15, "spread"):
            spec["topologySpreadConstraints"] = self.spread()
        if self.maybe(0.05, "images"):
            spec["volumes"] = [{"name": "v", "image": {"reference": self.rng.choice(_IMAGES)[0]}}, {"name": "e", "emptyDir": {}}]
        return pod

    def pod(self, name: str, *, rich: bool) -> Json:
        labels = {"app": self.rng.choice(_APPS)}
        if self.maybe(0.6):
            labels["tier"] = self.rng.choice(_TIERS)
        if self.maybe(0.4):
            labels["hash"] = self.rng.choice(("1", "2"))
        pod: Json = {
            "metadata": {"name": name, "namespace": self.rng.choice(_NAMESPACES), "uid": f"uid-{name}", "labels": labels},
            "spec": {"containers": self.times(self.container, 1, 3)},
        }
        if self.maybe(0.15):
            pod["spec"]["initContainers"] = self.times(self.init_container, 1, 3)
        if self.maybe(0.1):
            pod["spec"]["overhead"] = {"cpu": "50m", "memory": "64Mi"}
        if self.maybe(0.05):
            amounts = {"cpu": "1500m", "memory": "1Gi"}
            pod["spec"]["resources"] = {"requests": {name: amounts[name] for name in self.some(list(amounts), 1)}}
        if rich and self.maybe(0.2, "pod affinity"):
            affinity = {kind: self.pod_affinity() for kind in self.some(("podAffinity", "podAntiAffinity"), 1)}
            pod["spec"]["affinity"] = affinity
        return pod

    def container(self) -> Json:
        rng = self.rng
        asked: Json = {}
        if self.maybe(0.8):
            asked["cpu"] = rng.choice(("0", "100m", "250m", "1", "1500m", "0.5"))
        if self.maybe(0.8):
            asked["memory"] = rng.choice(("0", "64Mi", "500M", "1Gi", "1.5Gi", "123456789"))
        if self.maybe(0.1):
            asked["nvidia.com/gpu"] = rng.choice(("0", "1", "2"))
        if self.maybe(0.05):
            asked["ephemeral-storage"] = rng.choice(("1Gi", "8Gi"))
        if self.maybe(0.03):
            asked["example.com/widget"] = "1"
        if self.maybe(0.02):
            asked["hugepages-2Mi"] = "128Mi"
        image = rng.choice([name for name, _ in (*_IMAGES, *_BARE_IMAGES)]) + rng.choice(("", "", "-alias", ":latest"))
        made: Json = {"name": f"c{rng.randrange(10**6)}", "image": image, "resources": {"requests": asked}}
        if self.maybe(0.1):
            made["resources"]["limits"] = {"cpu": "3", "memory": "3Gi"}
        if self.maybe(0.08, "ports"):
            made["ports"] = self.times(self.port, 1, 2)
        return made

    def init_container(self) -> Json:
        return self.container() | ({"restartPolicy": "Always"} if self.maybe(0.4) else {})

    def port(self) -> Json:
        port: Json = {"containerPort": 80}
        if self.maybe(0.9):
            port["hostPort"] = self.rng.choice((8080, 8081, 9000))
        if self.maybe(0.4):
            port["hostIP"] = self.rng.choice(("10.0.0.1", "10.0.0.2", "0.0.0.0", "127.0.0.1"))
        if self.maybe(0.5):
            port["protocol"] = self.rng.choice(("TCP", "UDP"))
        return port

    def toleration(self) -> Json:
        rng = self.rng
        toleration: Json = {"operator": rng.choice(("Exists", "Equal"))}
        if toleration["operator"] == "Equal" or self.maybe(0.8):
            toleration["key"] = rng.choice(("dedicated", "gpu", "node.kubernetes.io/unschedulable", "level"))
        if toleration["operator"] == "Equal":
            toleration["value"] = rng.choice(("one", "two", "3", ""))
            if self.maybe(0.3):
                del toleration["operator"]
        if self.maybe(0.5):
            toleration["effect"] = rng.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
        return toleration

    # --- node affinity --------------------------------------------------------------------------------------------------------

    def node_affinity(self, names: list[str]) -> Json:
        found: Json = {}
        if self.maybe(0.6):
            terms = self.times(lambda: self.node_term(names), 0 if self.maybe(0.05) else 1, 3)
            found["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
        if self.maybe(0.6) or not found:
            preferred = self.times(lambda: {"weight": self.rng.randint(1, 100), "preference": self.node_term(names)}, 1, 3)
            found["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
        return found

    def node_term(self, names: list[str]) -> Json:
        term: Json = {}
        if self.maybe(0.85):
            term["matchExpressions"] = self.times(self.node_requirement, 1, 2)
        if self.maybe(0.2):
            term["matchFields"] = self.times(lambda: self.field_requirement(names), 1, 2)
        return term

    def field_requirement(self, names: list[str]) -> Json:
        return {"key": "metadata.name", "operator": self.rng.choice(("In", "NotIn", "In")), "values": [self.rng.choice(names)]}

    def node_requirement(self) -> Json:
        operator = self.rng.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
        if operator in ("Gt", "Lt"):
            values = [self.rng.choice(("1", "2", "8", "11"))]
            return {"key": self.rng.choice((_RACK, "gen")), "operator": operator, "values": values}
        pools = {"disk": ("ssd", "hdd"), _ZONE: ("z1", "z2", "z9"), "gen": ("7", "10", ""), _RACK: ("1", "x")}
        key, pool = self.rng.choice(list(pools.items()))
        requirement: Json = {"key": key, "operator": operator}
        if operator in ("In", "NotIn"):
            requirement["values"] = self.some(pool, 1)
        return requirement

    # --- pod affinity and spread ----------------------------------------------------------------------------------------------

    def pod_affinity(self) -> Json:
        found: Json = {}
        if self.maybe(0.6):
            found["requiredDuringSchedulingIgnoredDuringExecution"] = self.times(self.pod_term, 1, 2)
        if self.maybe(0.5) or not found:
            found["preferredDuringSchedulingIgnoredDuringExecution"] = self.times(
                lambda: {"weight": self.rng.randint(1, 100), "podAffinityTerm": self.pod_term()}, 1, 3
            )
        return found

    def pod_term(self) -> Json:
        term: Json = {"topologyKey": self.rng.choice((_HOST, _ZONE, _ZONE, _REGION, _RACK))}
        if self.maybe(0.95):
            term["labelSelector"] = self.selector()
        if self.maybe(0.3):
            term["namespaces"] = self.some(_NAMESPACES, 1)
        if self.maybe(0.3):
            team = {"key": "team", "operator": "DoesNotExist"}
            term["namespaceSelector"] = self.rng.choice(
                ({}, {"matchLabels": {"team": self.rng.choice(_TEAMS)}}, {"matchExpressions": [team]})
            )
        if "labelSelector" in term and self.maybe(0.1):
            term["matchLabelKeys"] = ["hash"]
        if "labelSelector" in term and self.maybe(0.1):
            term["mismatchLabelKeys"] = ["tier"]
        return term

    def selector(self) -> Json:
        found: Json = {}
        if self.maybe(0.75):
            found["matchLabels"] = self.rng.choice(
                ({"app": self.rng.choice(_APPS)}, {"tier": self.rng.choice(_TIERS)}, {"app": "web", "tier": "front"})
            )
        if self.maybe(0.35):
            found["matchExpressions"] = self.times(self.pod_requirement, 1, 2)
        return found

    def pod_requirement(self) -> Json:
        key, pool = self.rng.choice((("app", _APPS), ("tier", _TIERS), ("hash", ("1", "2"))))
        requirement: Json = {"key": key, "operator": self.rng.choice(("In", "NotIn", "Exists", "DoesNotExist"))}
        if requirement["operator"] in ("In", "NotIn"):
            requirement["values"] = self.some(pool, 1)
        return requirement

    def spread(self) -> list[Json]:
        kinds = self.some([(key, what) for key in (_HOST, _ZONE, _RACK) for what in ("DoNotSchedule", "ScheduleAnyway")], 1, 3)
        return [self.constraint(key, what) for key, what in kinds]

    def constraint(self, key: str, what: str) -> Json:
        found: dict[str, Any] = {"topologyKey": key, "whenUnsatisfiable": what, "maxSkew": self.rng.choice((1, 1, 2, 3))}
        if self.maybe(0.95):
            found["labelSelector"] = self.selector()
        if what == "DoNotSchedule" and self.maybe(0.3):
            found["minDomains"] = self.rng.randint(1, 5)
        if self.maybe(0.3):
            found["nodeAffinityPolicy"] = self.rng.choice(("Honor", "Ignore"))
        if self.maybe(0.3):
            found["nodeTaintsPolicy"] = self.rng.choice(("Honor", "Ignore"))
        if "labelSelector" in found and self.maybe(0.2):
            found["matchLabelKeys"] = self.some(("hash", "tier"), 1)
        return found
