#!/usr/bin/env bash
# CatSet: pods with numbers. They are made in order, each when the one before is ready, go in reverse order, and are
# replaced one by one from the last when the template changes.
source /shell_lib.sh

__config__() {
  cat <<'CONFIG'
configVersion: v1
reconcile:
- name: cat-set
  apiVersion: example.com/v1
  kind: CatSet
  children:
  - {apiVersion: v1, kind: Pod, update: OnDelete}
CONFIG
}

PODS='def number: .metadata.name | split("-") | last | tonumber;
  def up: .metadata.deletionTimestamp == null and any(.status.conditions[]?; .type == "Ready" and .status == "True");
  .object.spec as $spec | ($spec.template | tojson | @base64) as $template
  | (.children.Pod | map(.) | sort_by(number)) as $pods
  | [$pods[] | select(.metadata.annotations["example.com/template"] != $template)] as $old |'

__on_reconcile::cat-set() {
  # One is replaced at a time, and only if all others are up.
  patch::jq "${PODS}"' select(($pods | length) == $spec.replicas and all($pods[]; up)) | $old | last | select(.) | gone'
  reconcile::jq "${PODS}"' ([range($spec.replicas) as $number | select([$pods[] | select(number == $number and up)] == []) | $number] | first) as $next
    | {children: [range($spec.replicas) as $number | select($number <= ($next // $spec.replicas) or any($pods[]; number == $number))
        | child("v1"; "Pod"; "\($object.metadata.name)-\($number)") * $spec.template
        | .metadata.annotations["example.com/template"] = $template | .spec.hostname = .metadata.name],
      status: {replicas: ($pods | length), readyReplicas: ([$pods[] | select(up)] | length),
        updatedReplicas: (($pods | length) - ($old | length))}}'
}

hook::run "$@"
