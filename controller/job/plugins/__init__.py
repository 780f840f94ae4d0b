"""The job plugins: one file each, named in PLUGINS, which is also the order in which they add to a pod.

spec.plugins names them: {name: [arguments]}."""

from __future__ import annotations

from controller.job.plugins.base import MakeKeys, Plugin
from controller.job.plugins.env import Env
from controller.job.plugins.hcclrank import HcclRank
from controller.job.plugins.mpi import Mpi
from controller.job.plugins.pytorch import Pytorch
from controller.job.plugins.ray import Ray
from controller.job.plugins.ssh import Ssh, make_keys
from controller.job.plugins.svc import Svc
from controller.job.plugins.tensorflow import Tensorflow
from extender.api.errors import InvalidObject, nearest
from extender.api.job import Job

# Those that add init containers come before those that add something to every container.
PLUGINS: tuple[type[Plugin], ...] = (Tensorflow, Pytorch, Mpi, Ray, Ssh, Svc, Env, HcclRank)


def plugins_of(job: Job, keys: MakeKeys | None = None) -> list[Plugin]:
    """The plugins of a job, their arguments read. Raises InvalidObject for a name that is none."""
    asked = job.spec.plugins or {}
    known = {plugin.name: plugin for plugin in PLUGINS}
    for name in asked:
        if name not in known:
            raise InvalidObject(f"there is no job plugin '{name}'{nearest(name, known)}", path=f"spec.plugins.{name}")
    return [
        Ssh(asked[name] or (), keys or make_keys) if plugin is Ssh else plugin(asked[name] or ())
        for name, plugin in known.items()
        if name in asked
    ]
