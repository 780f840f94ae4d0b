"""Dynamic resource allocation: which devices a pod's ResourceClaims get on a node, with structured parameters.

    cel/       the expressions in which classes and requests say what device they want
    pools      ResourceSlices > the devices that each node can reach
    catalogue  what each node can reach, kept from one session to the next
    matching   which of them a request may have
    allocator  the search: devices for all claims of a pod on one node, or none
    wanted     a pod > its claims, and what is wrong with them
    filter     the state of one session: what is given away, which nodes are refused, what a binding writes
    written    what is written to a claim before its pod is bound
    taken      the devices that somebody has; capacity: a share of one
    quota      what claims count as in a queue

All follow k8s.io/dynamic-resource-allocation v0.36.1 and kube-scheduler's plugin DynamicResources of that version."""
