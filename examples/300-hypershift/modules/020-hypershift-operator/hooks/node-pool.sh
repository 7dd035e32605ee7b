#!/usr/bin/env bash
# NodePool: a set of machines of a hosted cluster, and the template that they are made from.
source /shell_lib.sh

__config__() {
  cat <<'CONFIG'
configVersion: v1
reconcile:
- name: node-pool
  apiVersion: hypershift.openshift.io/v1alpha1
  kind: NodePool
  finalizer: hypershift.openshift.io/finalizer
  queue: node-pool
  concurrency: 4
  children:
  - {apiVersion: cluster.x-k8s.io/v1alpha4, kind: MachineSet, jqFilter: "[.spec, .status, .metadata.labels, .metadata.annotations]"}
  - {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha4, kind: SimMachineTemplate, jqFilter: "[.spec, .metadata.labels, .metadata.annotations]"}
  related:
  - name: clusters
    apiVersion: hypershift.openshift.io/v1alpha1
    kind: HostedCluster
    namedBy: [spec.clusterName]
    # What else changes in a cluster does not matter to its pools.
    jqFilter: "[.spec.platform, (.status | [.infraID, .namespace, any(.conditions[]?; .reason == \"NamespaceTerminating\"), any(.conditions[]?; .reason == \"Paused\")])]"
CONFIG
}

__on_reconcile::node-pool() {
  reconcile::jq '
    ([.related.clusters[]] | first) as $cluster | ($cluster.status // {}) as $of | $object.metadata as $its
    | "infrastructure.cluster.x-k8s.io/v1alpha4" as $infrastructure | "SimMachineTemplate" as $kind
    | def member: .metadata += {namespace: $of.namespace, labels: {"cluster.x-k8s.io/cluster-name": $of.infraID},
        annotations: {"hypershift.openshift.io/nodePool": "\($its.namespace)/\($its.name)"}};
    if .type == "Finalize" then [.children["MachineSet.cluster.x-k8s.io"][]? | condition("Ready"; false; "Deleting";
        first(.status.conditions[]? | select(.reason == "Deleting") | .message) // "waits for the end of MachineSet \(.metadata.name)")]
      | if . == [] then {finalized: true} else {children: [], conditions: .} end
    elif $cluster == null then {conditions: [condition("Ready"; false; "ClusterNotFound"; "no HostedCluster \($object.spec.clusterName) in \($its.namespace)")]}
    elif $of.namespace == null then {conditions: [condition("Ready"; false; "WaitingForNamespace"; "HostedCluster \($cluster.metadata.name) has none yet")]}
    elif any($of.conditions[]?; .type == "ReconciliationActive" and .reason == "Paused") then {}
    elif any($of.conditions[]?; .reason == "NamespaceTerminating") then
      {conditions: [condition("Ready"; false; "NamespaceTerminating"; "waits for the end of Namespace \($of.namespace)")]}
    else
      {platform: ($object.spec.platform // {}), region: ([$cluster.spec.platform[]? | .region] | first // "")} as $machine
      | ($machine | hashed($its.name; 43)) as $template
      | ([$its.namespace, $its.name] | hashed("\($of.infraID)-\($cluster.metadata.name)-\($its.name)"; 43)) as $set
      | ([.children["MachineSet.cluster.x-k8s.io"][]?] | first) as $living
      | (($living.status.readyReplicas // 0) == $object.spec.nodeCount and $living.status.template == $template) as $ready
      | {children: [
          (child("cluster.x-k8s.io/v1alpha4"; "MachineSet"; $set) | member | .spec = {clusterName: $of.infraID,
            replicas: $object.spec.nodeCount, infrastructureRef: {apiVersion: $infrastructure, $kind, name: $template}}),
          (child($infrastructure; $kind; $template) | member | .spec = $machine),
          # The one before stays as long as machines use it.
          (owned[] | select(.kind != "MachineSet" and .metadata.name != $template and ($ready | not))
            | . as $old | child($infrastructure; $old.kind; .metadata.name) | member | .spec = $old.spec)],
        status: {nodeCount: ($living.status.readyReplicas // 0)},
        conditions: [if $ready then condition("Ready"; true; "AsExpected"; "")
          else condition("Ready"; false; "WaitingForMachines"; "\($living.status.readyReplicas // 0) of \($object.spec.nodeCount)") end]}
    end,
    # The cluster becomes the owner of its pools, and knows them by the annotation.
    ($cluster // empty | select(.metadata.uid as $uid | all($its.ownerReferences[]?; .uid != $uid) and $object.metadata.deletionTimestamp == null)
      | {apiVersion, kind, name: .metadata.name, uid: .metadata.uid} as $owner
      | {operation: "MergePatch", ignoreMissingObject: true} + ($object | {apiVersion, kind}) + ($its | {name, namespace})
        + {mergePatch: {metadata: {annotations: {"hypershift.openshift.io/cluster": $owner.name},
            ownerReferences: (($its.ownerReferences // []) + [$owner])}}})'
}

hook::run "$@"
