"""The table of extension points: hook, its switch in scheduler.conf, how the plugins' answers combine.

A plugin takes part in a point by having a method of the hook's name (hooks.py gives each one's signature and meaning). Answers
are asked tier by tier, in the order of the configuration, and combined in answers.py. Source: volcano ed72c7c,
pkg/scheduler/framework/session_plugins.go. Its points simulateAddTask, simulateRemoveTask, simulateAllocatable and
simulatePredicate have no row: what they ask of copies is asked here of the session itself, in a Statement that is undone, so
that `allocated`, `deallocated`, `allocatable` and `predicate` answer it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Combine(Enum):
    """How the answers of several plugins become one."""

    KEYS = "one sort key after the other; the lower goes first"
    EVERY = "all must agree"
    SOME = "one is enough"
    LEAST = "the smallest number"
    SUM = "added up"
    REDUCED = "each plugin's own: rounded down, then normalised by its `node_reduce`; then added up"
    REFUSALS = "any refusal counts"
    VOTE = "a rejection ends it; a permit decides at the end of its tier; all abstain: permitted"
    VICTIMS = "within a tier only candidates that all deciding plugins give; the first tier that leaves any decides"
    FIRST = "the first answer"
    ALONE = "the first plugin that has the hook decides alone"
    FIRST_TIER_EVERY = "all of the first tier that has the hook"
    UNION_IN_FIRST_TIER = "together within a tier; the first tier with any decides"
    CALL = "all are told"
    TOGETHER = "all of them"
    APART = "tasks that any plugin tells apart are judged apart"


class Point(NamedTuple):
    hook: str
    switch: str  # "" where it cannot be switched off
    combine: Combine
    default: bool = True  # of the switch, where the file does not say


POINTS: tuple[Point, ...] = (
    #     hook                             switch in scheduler.conf     how the plugins' answers combine
    Point("job_order",                     "enableJobOrder",            Combine.KEYS),
    Point("queue_order",                   "enableQueueOrder",          Combine.KEYS),
    Point("task_order",                    "enableTaskOrder",           Combine.KEYS),
    Point("sub_job_order",                 "enabledSubJobOrder",        Combine.KEYS),
    Point("cluster_order",                 "enabledClusterOrder",       Combine.KEYS, default=False),
    Point("victim_queue_order",            "",                          Combine.KEYS),
    Point("pre_predicate",                 "enablePredicate",           Combine.FIRST),
    Point("predicate",                     "enablePredicate",           Combine.REFUSALS),
    Point("predicate_across",              "enablePredicate",           Combine.REFUSALS),
    Point("best_node",                     "enableBestNode",            Combine.FIRST),
    Point("node_order",                    "enableNodeOrder",           Combine.SUM),
    Point("batch_node_order",              "enableNodeOrder",           Combine.SUM),
    Point("node_map",                      "enableNodeOrder",           Combine.REDUCED),
    Point("node_reduce",                   "enableNodeOrder",           Combine.REDUCED),
    Point("hyper_node_order",              "enabledHyperNodeOrder",     Combine.SUM),
    Point("hyper_node_gradient_for_job",   "enabledHyperNodeGradient",  Combine.ALONE),
    Point("hyper_node_gradient_for_sub_job","enabledHyperNodeGradient",  Combine.ALONE),
    Point("preemptable",                   "enablePreemptable",         Combine.VICTIMS),
    Point("reclaimable",                   "enableReclaimable",         Combine.VICTIMS),
    Point("unified_evictable",             "",                          Combine.VICTIMS),
    Point("overused",                      "enabledOverused",           Combine.SOME),
    Point("preemptive",                    "enablePreemptive",          Combine.EVERY),
    Point("allocatable",                   "enabledAllocatable",        Combine.LEAST),
    Point("allocatable_claims",            "enabledAllocatable",        Combine.LEAST),
    Point("job_valid",                     "",                          Combine.FIRST),
    Point("job_ready",                     "enableJobReady",            Combine.EVERY),
    Point("job_pipelined",                 "enableJobPipelined",        Combine.VOTE),
    Point("sub_job_ready",                 "enabledSubJobReady",        Combine.EVERY),
    Point("sub_job_pipelined",             "enabledSubJobPipelined",    Combine.VOTE),
    Point("job_starving",                  "enableJobStarving",         Combine.FIRST_TIER_EVERY),
    Point("job_enqueueable",               "enableJobEnqueued",         Combine.VOTE),
    Point("job_enqueued",                  "enableJobEnqueued",         Combine.CALL),
    Point("victim_tasks",                  "enabledVictim",             Combine.UNION_IN_FIRST_TIER),
    Point("reserved_nodes",                "enableReservedNodes",       Combine.CALL),
    Point("target_job",                    "enableTargetJob",           Combine.ALONE),
    Point("distinguish",                   "",                          Combine.APART),
    Point("before_bind",                   "",                          Combine.TOGETHER),
    Point("allocated",                     "",                          Combine.CALL),
    Point("deallocated",                   "",                          Combine.CALL),
)  # fmt: skip

# A switch that gates no point by itself: the plugins that know trees of queues read it.
SWITCHES: dict[str, bool] = {point.switch: point.default for point in POINTS if point.switch} | {"enableHierarchy": False}
