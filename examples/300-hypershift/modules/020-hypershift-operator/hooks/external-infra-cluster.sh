#!/usr/bin/env bash
# ExternalInfraCluster: it is ready when the control plane in its namespace is.
source /shell_lib.sh

__config__() {
  cat <<'CONFIG'
configVersion: v1
reconcile:
- name: external-infra-cluster
  apiVersion: hypershift.openshift.io/v1alpha1
  kind: ExternalInfraCluster
  finalizer: hypershift.openshift.io/finalizer
  queue: eic
  concurrency: 4
  related:
  - name: controlPlanes
    apiVersion: hypershift.openshift.io/v1alpha1
    kind: HostedControlPlane
    parentLabel: hypershift.openshift.io/infrastructure
    # What else a control plane says of itself does not matter here.
    jqFilter: .status | [.ready, .controlPlaneEndpoint]
CONFIG
}

__on_reconcile::external-infra-cluster() {
  # The infrastructure has an endpoint as soon as the control plane has one.
  reconcile::jq '([.related.controlPlanes[].status.ready] | any) as $ready | if .type == "Finalize" then {finalized: true} else {
      status: (if $ready then {$ready} else {} end),
      conditions: [condition("Ready"; $ready; if $ready then "AsExpected" else "WaitingForControlPlane" end; "")]
    }, (.related.controlPlanes[] | .status.controlPlaneEndpoint | select(. != null and . != $object.spec.controlPlaneEndpoint) as $endpoint
      | {operation: "MergePatch", mergePatch: {spec: {controlPlaneEndpoint: $endpoint}}} + ($object | {apiVersion, kind} + (.metadata | {name, namespace})))
  end'
}

hook::run "$@"
