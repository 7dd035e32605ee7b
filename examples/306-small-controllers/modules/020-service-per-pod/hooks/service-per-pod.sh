#!/usr/bin/env bash
# Each pod of a StatefulSet with the label `service-per-pod` has a Service of its own.
source /shell_lib.sh

__config__() {
  cat <<'CONFIG'
configVersion: v1
reconcile:
- name: service-per-pod
  apiVersion: apps/v1
  kind: StatefulSet
  labelSelector: {matchExpressions: [{key: service-per-pod, operator: Exists}]}
  children:
  - {apiVersion: v1, kind: Service}
CONFIG
}

__on_reconcile::service-per-pod() {
  reconcile::jq '(.object.metadata.annotations["service-per-pod-ports"] // "80:80" | split(",") | map(split(":") | map(tonumber))) as $ports
    | {children: [range(.object.spec.replicas // 1) | child("v1"; "Service"; "\($object.metadata.name)-\(.)")
        | .spec = {selector: {"statefulset.kubernetes.io/pod-name": .metadata.name},
            ports: [$ports[] | {name: "port-\(.[0])", port: .[0], targetPort: .[1]}]}]}'
}

hook::run "$@"
