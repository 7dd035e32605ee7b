#!/usr/bin/env bash
# Turns a Tab of v1alpha1 into one of v1, and back.
if [[ "${1:-}" == "--config" ]]; then
  cat <<'CONFIG'
configVersion: v1
kubernetesCustomResourceConversion:
- name: up
  crdName: tabs.example.com
  conversions: [{fromVersion: v1alpha1, toVersion: v1}]
- name: down
  crdName: tabs.example.com
  conversions: [{fromVersion: v1, toVersion: v1alpha1}]
CONFIG
  exit 0
fi

jq '.[0] | .binding as $binding | {convertedObjects: [.review.request.objects[]
  | if $binding == "up" then
      (.spec.schedule // "* *" | split(" ")) as [$minute, $hour]
      | .apiVersion = "example.com/v1" | .spec = {minute: $minute, hour: $hour}
    else
      .apiVersion = "example.com/v1alpha1" | .spec = {schedule: "\(.spec.minute) \(.spec.hour)"}
    end]}' "$BINDING_CONTEXT_PATH" > "$CONVERSION_RESPONSE_PATH"
