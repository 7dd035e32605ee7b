#!/usr/bin/env bash
# What the config operator of a hosted cluster would do: it publishes the authority that it finds there.
source /shell_lib.sh

__config__() {
  cat <<'CONFIG'
configVersion: v1
reconcile:
- name: config-operator
  apiVersion: apps/v1
  kind: Deployment
  nameSelector: {matchNames: [hosted-cluster-config-operator]}
  queue: capi
  children:
  - {apiVersion: v1, kind: ConfigMap}
CONFIG
}

__on_reconcile::config-operator() {
  reconcile::jq '{children: [$object.metadata.ownerReferences[]?
    | select(.kind == "HostedControlPlane") | .name as $plane
    | child("v1"; "ConfigMap"; "hosted-cluster-ca") | .metadata.labels = {"hypershift.openshift.io/hosted-ca": $plane}
    | .data = {"ca.crt": "-----BEGIN CERTIFICATE-----\n\("CA of \($object.metadata.namespace)" | @base64)\n-----END CERTIFICATE-----\n"}]}'
}

hook::run "$@"
