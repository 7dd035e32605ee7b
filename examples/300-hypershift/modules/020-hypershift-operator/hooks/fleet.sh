#!/usr/bin/env bash
# All hosted clusters together: whose an infraID is, and how many there are of each kind.
source /shell_lib.sh

__config__() {
  cat <<'CONFIG'
configVersion: v1
kubernetes:
- name: clusters
  apiVersion: hypershift.openshift.io/v1alpha1
  kind: HostedCluster
  jqFilter: |
    .status as $status | ([$status.conditions[]? | {(.type): .status}] | add) as $is | {
      name: "\(.metadata.namespace)/\(.metadata.name)", id: .spec.infraID, created: .metadata.creationTimestamp,
      given: .metadata.annotations["hypershift.openshift.io/infra-id"], firstReady: $status.version.history[-1]?.completionTime,
      phase: (if .metadata.deletionTimestamp then "Deleting" elif $is.ReconciliationActive == "False" then "Paused"
        elif $is.ValidConfiguration == "False" then "Invalid" elif $status.ready then "Ready" else "Progressing" end)}
  keepFullObjectsInMemory: false
  group: fleet
  queue: fleet
- name: pools
  apiVersion: hypershift.openshift.io/v1alpha1
  kind: NodePool
  jqFilter: "{wanted: (.spec.nodeCount // 0), ready: (.status.nodeCount // 0)}"
  keepFullObjectsInMemory: false
  group: fleet
  queue: fleet
CONFIG
}

__on_group::fleet() {
  # Who had an infraID keeps it; else it is that of the oldest cluster.
  patch::jq '[.snapshots.clusters[].filterResult | select(.id)] | group_by(.id)[]
    | (first(.[] | select(.given == "\(.id) \(.name)")) // min_by([.created, .name])) as $holder
    | .[] | select(.given != "\(.id) \($holder.name)") | (.name | split("/")) as [$namespace, $name]
    | {operation: "MergePatch", ignoreMissingObject: true, apiVersion: "hypershift.openshift.io/v1alpha1", kind: "HostedCluster",
       $namespace, $name, mergePatch: {metadata: {annotations: {"hypershift.openshift.io/infra-id": "\(.id) \($holder.name)"}}}}'
  context::global::jq -c '.[0].snapshots | [.clusters[].filterResult] as $clusters | [.pools[].filterResult] as $pools
    | def gauge($name; $labels; $value): {group: "fleet", action: "set", $name, $labels, $value};
    (("Progressing", "Ready", "Paused", "Invalid", "Deleting")
      | . as $phase | gauge("hosted_clusters"; {$phase}; [$clusters[] | select(.phase == $phase)] | length)),
    ($clusters[] | select(.firstReady) | gauge("hosted_cluster_ready_seconds"; {cluster: .name}; (.firstReady | fromdate) - (.created | fromdate))),
    gauge("node_pool_machines"; {state: "ready"}; [$pools[].ready] | add // 0),
    gauge("node_pool_machines"; {state: "waiting"}; [$pools[] | .wanted - .ready | select(. > 0)] | add // 0)' >> "${METRICS_PATH}"
}

hook::run "$@"
