#!/usr/bin/env bash
# Keeps a copy of each labelled Secret of the namespace `default` in all other namespaces.
source /shell_lib.sh

__config__() {
  cat <<'CONFIG'
configVersion: v1
kubernetes:
- name: originals
  apiVersion: v1
  kind: Secret
  namespace:
    nameSelector: {matchNames: [default]}
  labelSelector:
    matchLabels: {secret-copier: "yes"}
  jqFilter: "{name: .metadata.name, type, data: (.data // {})}"
  keepFullObjectsInMemory: false
  group: copies
- name: namespaces
  apiVersion: v1
  kind: Namespace
  jqFilter: "{name: .metadata.name, ends: (.metadata.deletionTimestamp != null)}"
  keepFullObjectsInMemory: false
  group: copies
- name: copies
  apiVersion: v1
  kind: Secret
  labelSelector:
    matchLabels: {secret-copier-copy: "yes"}
  jqFilter: "{name: .metadata.name, namespace: .metadata.namespace, data: (.data // {})}"
  keepFullObjectsInMemory: false
  group: copies
CONFIG
}

# Whatever happened: the snapshots say what is there and what should be.
__on_group::copies() {
  context::jq -c '
    .snapshots as $seen
    | [$seen.namespaces[].filterResult | select(.ends | not).name | select(. != "default")] as $namespaces
    | [$seen.originals[].filterResult] as $originals
    | [$seen.copies[].filterResult] as $copies
    | ($namespaces[] as $namespace | $originals[] as $original
       | [$copies[] | select(.namespace == $namespace and .name == $original.name)][0] as $copy
       | if $copy == null then
           {operation: "CreateIfNotExists", object: {
             apiVersion: "v1", kind: "Secret", type: $original.type, data: $original.data,
             metadata: {name: $original.name, namespace: $namespace, labels: {"secret-copier-copy": "yes"}}}}
         elif $copy.data != $original.data then
           # Keys that are gone from the original are removed by null.
           {operation: "MergePatch", apiVersion: "v1", kind: "Secret", namespace: $namespace, name: $original.name,
            mergePatch: {data: (($copy.data | map_values(null)) + $original.data)}}
         else empty end),
      ($copies[]
       | select(.name as $name | any($originals[]; .name == $name) | not)
       | {operation: "DeleteInBackground", apiVersion: "v1", kind: "Secret", namespace, name})
  ' > "${KUBERNETES_PATCH_PATH}"
}

hook::run "$@"
