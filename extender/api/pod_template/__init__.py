"""What Kubernetes would say about a pod template, said before the job is stored.

pod.py          template_faults: metadata and the fields of the pod itself
containers.py   containers, init containers and sidecars: names, ports, environment, probes, hooks
resources.py    requests, limits and claims
volumes.py      volumes, their sources, mounts and devices
projected.py    items of secrets and config maps, the downward API, projected volumes
annotations.py  annotations that Kubernetes itself reads
placement.py    affinity, tolerations, spread constraints
security.py     security contexts of pods and containers

Source: k8s.io/kubernetes v1.36.1, pkg/apis/core/validation, ValidatePodTemplateSpec after defaulting, with the options of
a new object (PodLevelResources on, all that is relaxed for old objects off), as the reference calls it."""
