#!/usr/bin/env bash
# All hosted clusters together: how many there are of each kind, as metrics.
source /shell_lib.sh

__config__() {
  cat <<'CONFIG'
configVersion: v1
# It reads all clusters at once, so it does not run for each change of one of them.
settings: {executionMinInterval: 1s, executionBurst: 1}
kubernetes:
- name: clusters
  apiVersion: hypershift.openshift.io/v1alpha1
  kind: HostedCluster
  jqFilter: |
    .status as $status | ([$status.conditions[]? | {(.type): .status}] | add) as $is | {
      name: "\(.metadata.namespace)/\(.metadata.name)", created: .metadata.creationTimestamp, firstReady: $status.version.history[-1]?.completionTime,
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
  patch::jq '[.snapshots.clusters[].filterResult] as $clusters | [.snapshots.pools[].filterResult] as $pools
    | def gauge($name; $labels; $value): {metric: {group: "fleet", action: "set", $name, $labels, $value}};
    (("Progressing", "Ready", "Paused", "Invalid", "Deleting")
      | . as $phase | gauge("hosted_clusters"; {$phase}; [$clusters[] | select(.phase == $phase)] | length)),
    ($clusters[] | select(.firstReady) | gauge("hosted_cluster_ready_seconds"; {cluster: .name}; (.firstReady | fromdate) - (.created | fromdate))),
    gauge("node_pool_machines"; {state: "ready"}; [$pools[].ready] | add // 0),
    gauge("node_pool_machines"; {state: "waiting"}; [$pools[] | .wanted - .ready | select(. > 0)] | add // 0)'
}

hook::run "$@"
