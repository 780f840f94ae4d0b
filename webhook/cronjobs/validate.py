"""What a CronJob must satisfy (POST /cronjobs/validate, CREATE and UPDATE). Its job template is checked when a job is made."""

from __future__ import annotations

import re
import zoneinfo

from extender.api import cron
from extender.api.checks import Faults, qualified_name
from extender.api.errors import Fault, InvalidObject
from extender.api.meta import Json
from extender.cluster.port import AdmissionRequest
from webhook.settings import Settings
from webhook.verdict import Verdict, verdict
from webhook.view import ClusterView

_LONGEST_NAME = 63 - 11  # the controller appends '-' and ten digits to a job's name
_ZONE_PART = re.compile(r"(?!-)(?!\.\.?$)[A-Za-z.\-_0-9+]{1,14}")


def validate(request: AdmissionRequest, _cluster: ClusterView, _settings: Settings) -> Verdict:
    return verdict(_faults(request.object or {}))


def _faults(cron_job: Json) -> Faults:
    meta, spec = cron_job.get("metadata", {}), cron_job.get("spec", {})
    schedule = spec.get("schedule", "")
    if not schedule:
        yield Fault("spec.schedule", "a schedule is required, such as '0 3 * * *'")
    elif "TZ" in schedule:
        yield Fault("spec.schedule", "a time zone belongs in spec.timeZone, not in the schedule")
    else:
        yield from _schedule_faults(schedule, "spec.schedule")
    if "timeZone" in spec:
        yield from _zone_faults(spec["timeZone"], "spec.timeZone")
    name = meta.get("name", "")
    if len(name) > _LONGEST_NAME:
        what = f"has {len(name)} characters, at most {_LONGEST_NAME} are allowed: the names of its jobs get 11 more"
        yield Fault("metadata.name", what)
    elif qualified_name(name):
        yield Fault("metadata.name", qualified_name(name))


def _schedule_faults(schedule: str, path: str) -> Faults:
    try:
        cron.parse(schedule)
    except InvalidObject as error:
        yield Fault(path, str(error))


def _zone_faults(zone: str, path: str) -> Faults:
    if not zone:
        yield Fault(path, "must not be empty: leave it out or name a zone such as Europe/Berlin")
    elif zone.lower() == "local":
        yield Fault(path, "Local is not allowed: name a zone such as Europe/Berlin")
    elif not all(map(_ZONE_PART.fullmatch, zone.split("/"))) or not _known(zone):
        yield Fault(path, f"'{zone}' is not a known time zone; names are those of https://www.iana.org/time-zones")


def _known(zone: str) -> bool:
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
