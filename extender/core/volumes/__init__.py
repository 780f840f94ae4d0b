"""Volumes: which nodes a pod's PersistentVolumeClaims leave it, which volume each gets, and what a binding writes for that.

    stock         volumes, claims and classes as one session sees them, what it has promised included
    needed        a pod > the claims that it mounts, and what is wrong with them
    matching      claims that wait for their pod > the volume that each gets on each node, or that one is made there
    bound         claims that have their volume > the nodes that can use it, by its node affinity and its zone
    restrictions  what one pod at a time may use: claims of the mode ReadWriteOncePod, disks named in pods
    attached      how many volumes of a CSI driver each node has and may have
    filter        the state of one session: which nodes are refused, what is promised, what a binding writes and waits for
    awaiting      has what a binding waits for come about?

All follow kube-scheduler v1.36.1: its plugins VolumeRestrictions, NodeVolumeLimits, VolumeBinding and VolumeZone. Volumes of
plugins that were once in Kubernetes itself count as what they are; they are not translated into those of CSI drivers."""
