"""The filters and scorers of kube-scheduler, as plain functions over columns.

    unschedulable node_name node_affinity taints image_locality     look at nodes only: one answer a class and session
    resources                                                       amounts of the places a plan asks about
    ports inter_pod_affinity topology_spread                        look at pods on nodes: counts per node or domain
    neighbours                                                      those pods, and the ones that moved in this session
    normalise                                                       how points become 0..100

The plugins predicates and nodeorder wrap these, and so does `pumice score`. Each module names its source; all follow
k8s.io/kubernetes v1.36.1 to the point. Codes of refusals: `unresolvable` where evicting pods cannot cure it."""
