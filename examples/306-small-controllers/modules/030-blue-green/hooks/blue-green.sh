#!/usr/bin/env bash
# BlueGreen: a new template becomes a second ReplicaSet. When all of it is ready, the Service changes over and the first one goes.
source /shell_lib.sh

__config__() {
  cat <<'CONFIG'
configVersion: v1
reconcile:
- name: blue-green
  apiVersion: example.com/v1
  kind: BlueGreen
  children:
  - {apiVersion: apps/v1, kind: ReplicaSet}
  - {apiVersion: v1, kind: Service}
CONFIG
}

__on_reconcile::blue-green() {
  reconcile::jq '$object.spec as $spec | $object.metadata.name as $name | ($spec.template | tojson | @base64) as $wanted
    | .children["ReplicaSet.apps"] as $sets | ($object.status.active // "blue") as $active
    | (if $active == "blue" then "green" else "blue" end) as $other
    | def living($color): $sets["\($name)-\($color)"];
      def said: .metadata.annotations["example.com/template"];
      def ready: . != null and (.status.readyReplicas // 0) >= $spec.replicas;
      def set($color; $template): {app: $name, color: $color} as $labels | child("apps/v1"; "ReplicaSet"; "\($name)-\($color)")
        | .metadata.annotations = {"example.com/template": $template}
        | .spec = {replicas: $spec.replicas, selector: {matchLabels: $labels},
            template: ($template | @base64d | fromjson | .metadata.labels += $labels)};
    (living($other) | said == $wanted and ready) as $changes_over
    | (if $changes_over then $other else $active end) as $now
    | ($changes_over or living($active) == null or (living($active) | said) == $wanted) as $is_settled
    | {children: ([child("v1"; "Service"; $name) | .spec = {selector: {app: $name, color: $now}, ports: $spec.ports}]
        + [set($now; if $is_settled then $wanted else living($active) | said end)]
        # One of a template that nobody wants any more goes first: its pods would stay what they are.
        + [if $is_settled or (living($other) != null and (living($other) | said) != $wanted) then empty else set($other; $wanted) end]),
      status: {active: $now, readyReplicas: (living($now).status.readyReplicas // 0)}}'
}

hook::run "$@"
