#!/usr/bin/env bash
# Cluster: owns what bears its name, and is ready when its control plane and its infrastructure are.
source /shell_lib.sh

__config__() {
  cat <<'CONFIG'
configVersion: v1
reconcile:
- name: cluster
  apiVersion: cluster.x-k8s.io/v1alpha4
  kind: Cluster
  finalizer: cluster.x-k8s.io/cluster
  queue: capi
  related:
  - name: planes
    apiVersion: hypershift.openshift.io/v1alpha1
    kind: HostedControlPlane
    parentLabel: cluster.x-k8s.io/cluster-name
    jqFilter: "[.status.ready, .metadata.ownerReferences]"
  - name: infrastructures
    apiVersion: hypershift.openshift.io/v1alpha1
    kind: ExternalInfraCluster
    parentLabel: cluster.x-k8s.io/cluster-name
    jqFilter: "[.status.ready, .metadata.ownerReferences]"
  - name: sets
    apiVersion: cluster.x-k8s.io/v1alpha4
    kind: MachineSet
    parentLabel: cluster.x-k8s.io/cluster-name
    jqFilter: .metadata.ownerReferences
  - name: templates
    apiVersion: infrastructure.cluster.x-k8s.io/v1alpha4
    kind: SimMachineTemplate
    parentLabel: cluster.x-k8s.io/cluster-name
    jqFilter: .metadata.ownerReferences
CONFIG
}

__on_reconcile::cluster() {
  reconcile::jq '([.related.planes[].status.ready] | any) as $plane | ([.related.infrastructures[].status.ready] | any) as $infrastructure
  | if .type == "Finalize" then {finalized: (.related.sets == {})} else {
    status: {controlPlaneReady: $plane, infrastructureReady: $infrastructure,
      phase: (if $infrastructure then "Provisioned" else "Provisioning" end)}
  }, (.related[][] | select([.metadata.ownerReferences[]? | .uid] | index($object.metadata.uid) | not)
    | {operation: "MergePatch", ignoreMissingObject: true, apiVersion, kind} + (.metadata | {name, namespace})
      + {mergePatch: {metadata: {ownerReferences: ((.metadata.ownerReferences // [])
        + [{apiVersion: "cluster.x-k8s.io/v1alpha4", kind: "Cluster", name: $object.metadata.name, uid: $object.metadata.uid}])}}}) end'
}

hook::run "$@"
