#!/usr/bin/env bash
# HostedCluster: a namespace with the operators of its control plane, and what they work on.
source /shell_lib.sh

__config__() {
  cat <<'CONFIG'
configVersion: v1
reconcile:
- name: hosted-cluster
  apiVersion: hypershift.openshift.io/v1alpha1
  kind: HostedCluster
  finalizer: hypershift.openshift.io/finalizer
  queue: hosted-cluster
  concurrency: 4
  children:
  # What else changes in a child does not matter to its cluster.
  - {apiVersion: v1, kind: Namespace, jqFilter: "[.metadata.deletionTimestamp, .metadata.labels, .metadata.annotations]"}
  - {apiVersion: v1, kind: Secret}
  - {apiVersion: apps/v1, kind: Deployment, jqFilter: "[.spec, .metadata.labels, .metadata.annotations]"}
  - {apiVersion: cluster.x-k8s.io/v1alpha4, kind: Cluster, update: OnDelete, jqFilter: .status}
  - {apiVersion: hypershift.openshift.io/v1alpha1, kind: HostedControlPlane, exact: [spec],
     jqFilter: "[.spec, .status, .metadata.labels, .metadata.annotations]"}
  - {apiVersion: hypershift.openshift.io/v1alpha1, kind: ExternalInfraCluster, jqFilter: "[.spec, .metadata.labels, .metadata.annotations]"}
  - {apiVersion: hypershift.openshift.io/v1alpha1, kind: NodePool, update: OnDelete, jqFilter: .metadata.uid}
  related:
  - {name: secrets, apiVersion: v1, kind: Secret, namedBy: [spec.pullSecret.name, spec.sshKey.name, spec.providerCreds.name], jqFilter: "[.type, .data]"}
  - {name: kubeconfigs, apiVersion: v1, kind: Secret, parentAnnotation: hypershift.openshift.io/cluster, jqFilter: "[.type, .data]"}
  - {name: pools, apiVersion: hypershift.openshift.io/v1alpha1, kind: NodePool, parentAnnotation: hypershift.openshift.io/cluster, jqFilter: "[.metadata.name, .spec.clusterName]"}
CONFIG
}

__on_reconcile::hosted-cluster() {
  reconcile::jq --slurpfile values "${VALUES_PATH}" "$(< "${HOOK_DIR}/../lib/hosted-cluster.jq")"'
    if .type == "Finalize" then
        # Machines outlive neither their pools, also those that people made, nor the operators that remove them. The rest goes by itself.
        first($pools[], $cluster // empty, null) as $next | if $next then {conditions: [lacks("Deleting"; "the end of \($next.kind) \($next.metadata.name)")]}
          else {finalized: true, conditions: [lacks("Deleting"; "the end of Namespace \($space)")]} end,
          (if $pools != {} then $pools[] else $next // empty end | select(.metadata.deletionTimestamp == null) | gone)
      elif $pause > 0 then {requeueAfter: (if $pause < 86400 then "\($pause | ceil)s" else null end), conditions: [
          {ReconciliationActive: false, Available: ($status.ready == true)} | to_entries[] | condition(.key; .value; "Paused"; "until \($spec.pausedUntil)")]}
      elif $wrong then {conditions: [condition("ValidConfiguration"; false; $wrong[0]; $wrong[1]), (valid | select(.type == "ReconciliationActive")),
        condition(if $status.ready then empty else "Available" end; false; $wrong[0]; $wrong[1])]}
      elif $spec.infraID and $given != $infra then {conditions: [valid, lacks("WaitingForInfrastructure"; "infraID \($infra)")]}
      elif $its.deletionTimestamp then {status: ($status + {ready: false} | del(.conditions)),
        conditions: [valid, lacks("NamespaceTerminating"; "the end of Namespace \($space)")]}
      else {
        children: [{apiVersion: "v1", kind: "Namespace", metadata: {name: $space, labels: {"hypershift.openshift.io/hosted-control-plane": "true"}}},
          # The type of a Secret can not change: a copy that has another one goes first.
          ($secrets[] as [$field, $copy] | $context.related.secrets[$spec[$field].name]
            | select(.type as $type | $living.Secret["\($space)/\($copy)"] | . == null or .type == $type)
            | child("v1"; "Secret"; $copy) + {type, data} | .metadata.namespace = $space),
          (within("apps/v1"; "Deployment"; "control-plane-operator", "cluster-api", "capi-provider") | operates),
          (within("cluster.x-k8s.io/v1alpha4"; "Cluster"; $infra) | .spec = {
            controlPlaneRef: {apiVersion: $api, kind: "HostedControlPlane", name: $name, namespace: $space},
            infrastructureRef: {apiVersion: $api, kind: "ExternalInfraCluster", name: $name, namespace: $space}}),
          (within($api; "HostedControlPlane", "ExternalInfraCluster"; $name)
            | .metadata.labels = {"cluster.x-k8s.io/cluster-name": $infra, "hypershift.openshift.io/infrastructure": $name}
            | .spec = if .kind == "ExternalInfraCluster"
                then {region: ([$spec.platform[]?.region] | first // ""), computeReplicas: $spec.initialComputeReplicas}
                else {releaseImage: $spec.release.image, infraID: $infra, platform: ($spec.platform // {})}
                  + ($spec.networking // {}) + ([$secrets[] | {(.[0]): {name: .[1]}}] | add // {}) end),
          # The first pool is made once: who deletes it wants none.
          (child($api; "NodePool"; $name) | .metadata.annotations = {"hypershift.openshift.io/cluster": $name}
            | .spec = {clusterName: $name, nodeCount: $spec.initialComputeReplicas, platform: ($spec.platform // {} | map_values(.nodePoolDefaults // {}))}
            | select($spec.initialComputeReplicas > 0 and ($living["NodePool.hypershift.openshift.io"] != {} or ($status.initialNodePool | not)))),
          ($kubeconfig | select(.) | child("v1"; "Secret"; "\($name)-admin-kubeconfig") + {type, data})],
        status: ({ready: $ready, infraID: $infra, namespace: $space, initialNodePool: ($spec.initialComputeReplicas > 0 or $status.initialNodePool == true),
            version: {desired: {image: $spec.release.image}, history: ($status.version.history | rolled($rolled_out))}}
          + if $kubeconfig then {kubeconfig: {name: "\($name)-admin-kubeconfig"}} else {} end),
        conditions: [valid, (if $ready then condition("Available"; true; "AsExpected"; "")
          elif $its == null then lacks("WaitingForNamespace"; "Namespace \($space)")
          elif $plane.ready then lacks("WaitingForInfrastructure"; "ExternalInfraCluster \($name)")
          else "HostedControlPlane \($name)" as $it | first(($plane.conditions[]? | select(.type == "Available" and .status != "True")
              | lacks(.reason; .message // $it)), lacks("WaitingForControlPlane"; $it)) end),
          condition("Progressing"; $rolled_out | not; "AsExpected"; "")]} end, pauses'
}

hook::run "$@"
