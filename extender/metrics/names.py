"""The scheduler's metrics as rows. Source of names, labels and buckets: volcano ed72c7c, pkg/scheduler/metrics.

Not there: the stages Predicate, Scoring and PreBind, and the moment Watched, for a session judges classes of tasks and not
single ones; namespace_* and vgpu_*, which nothing sets."""

from __future__ import annotations

from extender.cluster.metrics import COUNT, COUNTER, GAUGE, HISTOGRAM, LEADER, WRITE_FAILURES, Metric, exponential_range

_JOB = ("job_name", "queue", "job_namespace")
E2E = Metric("volcano_e2e_scheduling_latency_milliseconds", HISTOGRAM, "One whole session, from its snapshot to its end.",
             buckets=exponential_range(1, 5000, 20))  # fmt: skip
OPEN = Metric("volcano_open_session_duration_milliseconds", HISTOGRAM, "Opening a session: snapshot, set-up, plugins.",
              buckets=exponential_range(1, 5000, 20))  # fmt: skip
ACTION = Metric("volcano_action_scheduling_latency_milliseconds", HISTOGRAM, "One action.", ("action",),
                exponential_range(1, 2000, 20))  # fmt: skip
PLUGIN = Metric("volcano_plugin_scheduling_latency_milliseconds", HISTOGRAM,
                "A plugin's work at the beginning (OnSessionOpen) and at the end (OnSessionClose) of a session.",
                ("plugin", "OnSession"), exponential_range(0.1, 100, 15))  # fmt: skip
STAGE = Metric("volcano_scheduling_stage_duration_milliseconds", HISTOGRAM, "Stage Bind: one binding written.", ("stage",),
               exponential_range(0.1, 500, 20))  # fmt: skip
TASK = Metric("volcano_task_scheduling_latency_milliseconds", HISTOGRAM,
              "Age of a pod when it was decided where it goes (Assumed) and when it was bound (Bound).",
              ("stage",), exponential_range(50, 60000, 30))  # fmt: skip
JOB_LATENCY = Metric("volcano_e2e_job_scheduling_latency_milliseconds", HISTOGRAM,
                     "Age of the PodGroup when one of its pods was given a node.",
                     buckets=exponential_range(100, 120000, 30))  # fmt: skip
JOB_DURATION = Metric("volcano_e2e_job_scheduling_duration", GAUGE, "The same in milliseconds, of the last pod.", _JOB,
                      per_job=True)  # fmt: skip
JOB_START = Metric("volcano_e2e_job_scheduling_start_time", GAUGE, "When the PodGroup was made, in Unix seconds.", _JOB,
                   per_job=True)  # fmt: skip
JOB_LAST = Metric("volcano_e2e_job_scheduling_last_time", GAUGE, "When the last pod was given a node, in Unix seconds.", _JOB,
                  per_job=True)  # fmt: skip
ATTEMPTS = Metric("volcano_schedule_attempts_total", COUNTER,
                  "Pods bound (scheduled), bindings refused (error), jobs left waiting by a session (unschedulable).",
                  ("result",))  # fmt: skip
VICTIMS = Metric("volcano_pod_preemption_victims", GAUGE, "Pods that the last session evicted for others.")
PREEMPTIONS = Metric("volcano_total_preemption_attempts", COUNT, "Pods for which others were evicted.")
EVICTIONS = Metric("volcano_eviction_transactions_total", COUNTER,
                   "Sessions in which the action evicted anything.", ("action",))  # fmt: skip
UNSCHEDULED_JOBS = Metric("volcano_unschedule_job_count", GAUGE, "Jobs that have fewer members placed than they need.")
UNSCHEDULED_TASKS = Metric("volcano_unschedule_task_count", GAUGE, "Members that the job still lacks.", ("job_id",), per_job=True)
JOB_SHARE = Metric("volcano_job_share", GAUGE, "Its dominant share of the cluster (drf).", ("job_ns", "job_id"), per_job=True)
RETRIES = Metric("volcano_job_retry_counts", COUNT, "Sessions that left the job short of members.", ("job_id",), per_job=True)

_FAMILIES = {
    "allocated": "What the queue's tasks hold",
    "request": "What they hold and ask for",
    "deserved": "What the queue deserves",
    "capacity": "The queue's capability",
    "real_capacity": "The most that the queue can have, as the cluster stands",
    "inqueue": "What jobs that were let in may still come to use",
}
UNITS = (
    ("milli_cpu", ("queue_name",), "thousandths of a CPU"),
    ("memory_bytes", ("queue_name",), "bytes"),
    ("scalar_resources", ("queue_name", "resource"), "thousandths; pods plain"),
)
QUEUE_AMOUNTS = {
    (family, unit): Metric(f"volcano_queue_{family}_{unit}", GAUGE, f"{words}, in {unit_words}.", labels)
    for family, words in _FAMILIES.items()
    for unit, labels, unit_words in UNITS
}
QUEUE_SHARE = Metric("volcano_queue_share", GAUGE, "Its largest share of what it deserves.", ("queue_name",))
QUEUE_WEIGHT = Metric("volcano_queue_weight", GAUGE, "spec.weight.", ("queue_name",))
QUEUE_OVERUSED = Metric("volcano_queue_overused", GAUGE, "1 where it has more than it deserves.", ("queue_name",))

WAITING = Metric("volcano_waiting_jobs", GAUGE, "Jobs that wait, by the dominant reason.", ("reason",))
SESSIONS = Metric("volcano_sessions_total", COUNTER, "Sessions; none is held where nothing has changed.")
LAST_SESSION = Metric("volcano_last_session_timestamp_seconds", GAUGE, "When the last session began, in Unix seconds.")
UNREADABLE = Metric("volcano_unreadable_objects", GAUGE, "Objects that are passed over because they cannot be read.")
RELOADS = Metric("volcano_config_reloads_total", COUNTER, "Reloads of scheduler.conf: success or failure.", ("result",))
RELOADED = Metric("volcano_config_last_reload_successful", GAUGE, "0 while the file cannot be used and an older one is in force.")
RELOADED_AT = Metric("volcano_config_last_reload_success_timestamp_seconds", GAUGE,
                     "When the configuration that is in force was read, in Unix seconds.")  # fmt: skip

SCHEDULER = (
    E2E, OPEN, ACTION, PLUGIN, STAGE, TASK, JOB_LATENCY, JOB_DURATION, JOB_START, JOB_LAST, ATTEMPTS, VICTIMS, PREEMPTIONS,
    EVICTIONS, UNSCHEDULED_JOBS, UNSCHEDULED_TASKS, JOB_SHARE, RETRIES, *QUEUE_AMOUNTS.values(), QUEUE_SHARE, QUEUE_WEIGHT,
    QUEUE_OVERUSED, WAITING, SESSIONS, LAST_SESSION, UNREADABLE, RELOADS, RELOADED, RELOADED_AT,
)  # fmt: skip
PROGRAM = (*SCHEDULER, LEADER, WRITE_FAILURES)  # all that vc-scheduler makes itself
ON_REQUEST = {QUEUE_SHARE, QUEUE_WEIGHT, QUEUE_OVERUSED, UNSCHEDULED_JOBS, UNSCHEDULED_TASKS, JOB_SHARE, UNREADABLE,
               *QUEUE_AMOUNTS.values()}  # fmt: skip
