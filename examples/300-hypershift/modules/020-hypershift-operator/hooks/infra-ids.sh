#!/usr/bin/env bash
# Whose an infraID is, and whose the namespace of a control plane: the cluster that has it keeps it, and another one waits.
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
     given: .metadata.annotations["hypershift.openshift.io/infra-id"], taken: .metadata.annotations["hypershift.openshift.io/namespace-taken-by"],
     there: (.status.namespace != null)}
  keepFullObjectsInMemory: false
  group: infra-ids
  queue: infra-ids
# The namespaces of control planes have this label, and are none of other people.
- name: namespaces
  apiVersion: v1
  kind: Namespace
  labelSelector: {matchExpressions: [{key: hypershift.openshift.io/hosted-control-plane, operator: DoesNotExist}]}
  jqFilter: '{name: .metadata.name, owner: .metadata.annotations["addon-operator.io/owned-by"]}'
  keepFullObjectsInMemory: false
  group: infra-ids
  queue: infra-ids
CONFIG
}

__on_group::infra-ids() {
  patch::jq 'def notes($annotations): (.name | split("/")) as [$namespace, $name] | {operation: "MergePatch", ignoreMissingObject: true,
      apiVersion: "hypershift.openshift.io/v1alpha1", kind: "HostedCluster", $namespace, $name, mergePatch: {metadata: {$annotations}}};
    [.snapshots.namespaces[].filterResult] as $namespaces | [.snapshots.clusters[].filterResult]
    # Who has a namespace keeps it, also if that is no cluster; names with dots and dashes may make the same.
    # This comes first: a cluster waits for its infraID.
    | (group_by(.name | gsub("[/.]"; "-"))[] | min_by([(.there | not), .created, .name]) as $holder
      | any($namespaces[]; .name == ($holder.name | gsub("[/.]"; "-")) and .owner != "HostedCluster.hypershift.openshift.io/\($holder.name)") as $is_foreign
      | .[] | (if .name != $holder.name then "HostedCluster \($holder.name)" elif $is_foreign then "somebody else" else null end) as $by
      | select(.taken != $by) | notes({"hypershift.openshift.io/namespace-taken-by": $by})),
    # So with an infraID.
    (map(select(.id)) | group_by(.id)[] | (first(.[] | select(.given == "\(.id) \(.name)")) // min_by([.created, .name])) as $holder
      | .[] | "\(.id) \($holder.name)" as $given | select(.given != $given) | notes({"hypershift.openshift.io/infra-id": $given}))'
}

hook::run "$@"
