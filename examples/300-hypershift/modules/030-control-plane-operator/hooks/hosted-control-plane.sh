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
  - {apiVersion: apps/v1, kind: Deployment}
CONFIG
}

__on_reconcile::hosted-control-plane() {
  reconcile::jq --slurpfile values "${VALUES_PATH}" '
    $object.metadata as $its | $values[0].global.hypershift.releases[$object.spec.releaseImage] as $release
    | ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "hosted-cluster-config-operator"] as $components
    | ["WaitingForEtcd", "WaitingForKubeAPIServer", "WaitingForComponents", "WaitingForComponents", "WaitingForComponents"] as $reasons
    | def up: $context.children["Deployment.apps"][.] | . != null and (.status.availableReplicas // 0) > 0
        and (.status.observedGeneration // 0) >= .metadata.generation;
      def runs: {app: .metadata.name} as $labels | .spec = {replicas: 1, selector: {matchLabels: $labels},
        template: {metadata: {labels: $labels}, spec: {containers: [{name: "component", image: $release.image}]}}};
    [$components | to_entries[] | select(.value | up | not) | .key] as $down
    | ($context.children.Service["kube-apiserver"].spec.clusterIP // "") as $host
    | {host: $host, port: 6443} as $endpoint
    | ($down == [] and $host != "") as $ready
    | if .type == "Finalize" then {finalized: true}
      elif $release == null then {conditions: [condition("Available"; false; "UnknownRelease"; $object.spec.releaseImage)]}
      else {
        # What is there stays; the first that is missing is made.
        children: ([(child("v1"; "Service"; "kube-apiserver") | .spec = {selector: {app: "kube-apiserver"}, ports: [{name: "https", port: 6443}]})]
          + [$components | to_entries[] | select(.key <= ($down[0] // 4) or $context.children["Deployment.apps"][.value]) | child("apps/v1"; "Deployment"; .value) | runs]
          + if $ready then [(child("v1"; "Secret"; "admin-kubeconfig")
              | .metadata.annotations = {"hypershift.openshift.io/cluster": $its.annotations["hypershift.openshift.io/cluster"]}
              | .stringData = {kubeconfig: "apiVersion: v1\nkind: Config\nclusters: [{name: hosted, cluster: {server: https://\($host):6443}}]\n"})] else [] end),
        status: ({ready: ($ready or $object.status.ready == true)}
          + if $ready then {version: $release.version, controlPlaneEndpoint: $endpoint, kubeConfig: {name: "admin-kubeconfig"}}
            else ($object.status // {} | del(.ready, .conditions, .observedGeneration)) end),
        conditions: [
          condition("EtcdAvailable"; ("etcd" | up); "AsExpected"; ""),
          condition("KubeAPIServerAvailable"; ("kube-apiserver" | up); "AsExpected"; ""),
          condition("InfrastructureReady"; $host != ""; "AsExpected"; ""),
          (if $ready then condition("Available"; true; "AsExpected"; "")
           else condition("Available"; false; $reasons[$down[0] // 0]; "waits for \($components[$down[0] // 0])") end)]
      } end'
}

hook::run "$@"
