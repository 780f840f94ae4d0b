"""The filters and scorers of kube-scheduler, as plain functions over columns.

    unschedulable node_name node_affinity taints image_locality     look at nodes only: one answer for all that say the same
    resources                                                       amounts of the places a plan asks about
    ports inter_pod_affinity topology_spread                        look at pods on nodes: counts per node or domain
    neighbours                                                      those pods, and the ones that moved in this session
    pod_terms default_spread                                        whom a pod looks for, or is spread from
    normalise                                                       how points become 0..100
    default_profile                                                 all of them, for one pod, as kube-scheduler runs them

The plugins predicates and nodeorder wrap these, and so does `pumice score`. Each module names its source; all follow
k8s.io/kubernetes v1.36.1 to the point, which tests/parity/test_kube_scores.py shows. A refusal is `unresolvable` where
evicting pods cannot cure it."""
