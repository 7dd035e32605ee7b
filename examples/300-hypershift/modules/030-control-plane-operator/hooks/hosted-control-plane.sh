#!/usr/bin/env bash
# HostedControlPlane: the components of a control plane, each when the one before is available.
source /shell_lib.sh

__config__() {
  cat <<'CONFIG'
configVersion: v1
reconcile:
- name: hosted-control-plane
  apiVersion: hypershift.openshift.io/v1alpha1
  kind: HostedControlPlane
  finalizer: hypershift.openshift.io/finalizer
  queue: hcp
  concurrency: 4
  children:
  - {apiVersion: v1, kind: Service}
  - {apiVersion: v1, kind: Secret}
  - {apiVersion: v1, kind: ConfigMap}
  - apiVersion: apps/v1
    kind: Deployment
    # Nothing is to be done before a component is up, and again when it is not any more.
    jqFilter: if .status.availableReplicas > 0 and .status.observedGeneration == .metadata.generation then [.spec, .metadata.labels] else null end
  related:
  - name: operators
    apiVersion: apps/v1
    kind: Deployment
    labelSelector: {matchExpressions: [{key: hypershift.openshift.io/control-plane, operator: Exists}]}
    parentLabel: hypershift.openshift.io/control-plane
    jqFilter: .metadata.annotations["hypershift.openshift.io/release-image"]
  - name: authorities
    apiVersion: v1
    kind: ConfigMap
    labelSelector: {matchExpressions: [{key: hypershift.openshift.io/hosted-ca, operator: Exists}]}
    parentLabel: hypershift.openshift.io/hosted-ca
    jqFilter: .data
CONFIG
  # An operator in the namespace of a control plane looks after that one only.
  [[ -z ${HOSTED_CONTROL_PLANE_NAMESPACE:-} ]] || echo "  namespace: {nameSelector: {matchNames: [${HOSTED_CONTROL_PLANE_NAMESPACE}]}}"
}

__on_reconcile::hosted-control-plane() {
  reconcile::jq --slurpfile values "${VALUES_PATH}" "$(< "${HOOK_DIR}/../lib/components.jq")"'
    [$components | to_entries[] | select(.value | up | not) | .key] as $down | ($context.children.Service["kube-apiserver"].spec.clusterIP // "") as $host
    | {host: $host, port: 6443} as $endpoint | ($down == [] and $host != "") as $ready
    # Between two releases a component may be down for a moment.
    | ($ready or ($object.status.ready == true and $object.status.version != $release.version)) as $kept
    | [.related.operators[].metadata.annotations["hypershift.openshift.io/release-image"]] as $operators
    | if .type == "Finalize" then {finalized: true}
      # One version of the operator looks after one release.
      elif $operators != [] and ($operators | index($object.spec.releaseImage) | not) then
        {conditions: [condition("ReconciliationActive"; false; "ReleaseMismatch"; "the control plane operator is of \($operators[0])")]}
      elif $object.spec.pausedUntil then {conditions: [condition("ReconciliationActive"; false; "Paused"; "until \($object.spec.pausedUntil)")]}
      elif $release == null then {conditions: [condition("Available"; false; "UnknownRelease"; $object.spec.releaseImage)]}
      else {
        # What is there stays; the first that is missing, or of another release, is made.
        children: ([(child("v1"; "Service"; "kube-apiserver") | .spec = {selector: {app: "kube-apiserver"}, ports: [{name: "https", port: 6443}]}),
            # What the config operator found in the hosted cluster.
            (child("v1"; "ConfigMap"; "kube-controller-manager-ca-bundle")
              | .data = {"ca-bundle.crt": ([$context.related.authorities[].data["ca.crt"]] | add // "")})]
          + [$components | to_entries[] | (if .key <= ($down[0] // 4) then $release.image else .value | image end) as $image
              | select($image) | child("apps/v1"; "Deployment"; .value) | runs($image)]
          # What was published stays published.
          + if $kept or $context.children.Secret["admin-kubeconfig"] then [(child("v1"; "Secret"; "admin-kubeconfig")
              | .metadata.annotations = {"hypershift.openshift.io/cluster": $its.annotations["hypershift.openshift.io/cluster"]}
              | .stringData.kubeconfig = "apiVersion: v1\nkind: Config\nclusters: [{name: hosted, cluster: {server: https://\($host):6443}}]\n")]
            else [] end),
        status: ({ready: $kept}
          + if $ready then {version: $release.version, controlPlaneEndpoint: $endpoint, kubeConfig: {name: "admin-kubeconfig"}}
            else ($object.status // {} | del(.ready, .conditions, .observedGeneration)) end),
        conditions: [
          (("etcd" | up) as $is | condition("EtcdAvailable"; $is; if $is then "AsExpected" else $reasons[0] end; "")),
          (("kube-apiserver" | up) as $is | condition("KubeAPIServerAvailable"; $is; if $is then "AsExpected" else $reasons[1] end; "")),
          condition("InfrastructureReady"; $host != ""; if $host != "" then "AsExpected" else "WaitingForInfrastructure" end; ""),
          (if $kept then condition("Available"; true; "AsExpected"; if $ready then "" else "rolls out \($components[$down[0] // 0])" end)
           else condition("Available"; false; $reasons[$down[0] // 0]; "waits for \($components[$down[0] // 0])") end),
          condition("ReconciliationActive"; true; "AsExpected"; "")]
      } end'
}

hook::run "$@"
