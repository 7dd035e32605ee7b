#!/usr/bin/env bash
# Whose an infraID is: the cluster that has it keeps it, and another one that names it waits.
source /shell_lib.sh

__config__() {
  cat <<'CONFIG'
configVersion: v1
kubernetes:
- name: clusters
  apiVersion: hypershift.openshift.io/v1alpha1
  kind: HostedCluster
  # Only what is said here runs it: its name, what it asks for, what it was given.
  jqFilter: |
    {name: "\(.metadata.namespace)/\(.metadata.name)", id: .spec.infraID, created: .metadata.creationTimestamp,
     given: .metadata.annotations["hypershift.openshift.io/infra-id"]}
  keepFullObjectsInMemory: false
  group: infra-ids
  queue: infra-ids
CONFIG
}

__on_group::infra-ids() {
  # Who had an infraID keeps it; else it is that of the oldest cluster.
  patch::jq '[.snapshots.clusters[].filterResult | select(.id)] | group_by(.id)[]
    | (first(.[] | select(.given == "\(.id) \(.name)")) // min_by([.created, .name])) as $holder
    | .[] | select(.given != "\(.id) \($holder.name)") | (.name | split("/")) as [$namespace, $name]
    | {operation: "MergePatch", ignoreMissingObject: true, apiVersion: "hypershift.openshift.io/v1alpha1", kind: "HostedCluster",
       $namespace, $name, mergePatch: {metadata: {annotations: {"hypershift.openshift.io/infra-id": "\(.id) \($holder.name)"}}}}'
}

hook::run "$@"
