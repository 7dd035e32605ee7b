#!/usr/bin/env bash
# A controller in bash: each Website is a ConfigMap with its page and a Deployment that serves it.
source /shell_lib.sh

__config__() {
  cat <<'CONFIG'
configVersion: v1
reconcile:
- name: websites
  apiVersion: example.com/v1
  kind: Website
  finalizer: example.com/website
  children:
  - {apiVersion: v1, kind: ConfigMap}
  - {apiVersion: apps/v1, kind: Deployment}
CONFIG
}

__on_reconcile::websites() {
  reconcile::jq '$object.metadata.name as $name | $object.spec as $spec | {website: $name} as $labels
  | if .type == "Finalize" then {finalized: true} else {
    children: [child("v1"; "ConfigMap"; $name) + {data: {"index.html": $spec.text}},
      child("apps/v1"; "Deployment"; $name) + {spec: {replicas: ($spec.replicas // 1), selector: {matchLabels: $labels}, template: {
        metadata: {labels: $labels, annotations: {"checksum/page": ($spec.text | @base64)}},
        spec: {volumes: [{name: "page", configMap: {name: $name}}], containers: [
          {name: "web", image: "nginx:1.27-alpine", volumeMounts: [{name: "page", mountPath: "/usr/share/nginx/html"}]}]}}}}],
    status: {phase: (if ready("Deployment.apps") then "Ready" else "Deployed" end)}
  } end'
}

hook::run "$@"
