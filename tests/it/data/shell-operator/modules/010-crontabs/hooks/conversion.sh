#!/usr/bin/env bash
# Has the shape of the example of shell-operator for conversions: full names of versions, and a framework at a place that may be unset.

source $FRAMEWORK_DIR/shell_lib.sh

function __config__() {
  cat <<CONFIG
configVersion: v1
kubernetesCustomResourceConversion:
  - name: alpha1_to_alpha2
    crdName: crontabs.stable.example.com
    conversions:
    - fromVersion: stable.example.com/v1alpha1
      toVersion: stable.example.com/v1alpha2
CONFIG
}

function __on_conversion::alpha1_to_alpha2() {
  if newer=$(context::jq -r '.review.request.objects//[] | map(
     if .apiVersion == "stable.example.com/v1alpha1" then
       .apiVersion = "stable.example.com/v1alpha2" | .spec.cron = (.spec.cron | join(" "))
     else . end
  )')
  then
    cat <<ANSWER >$CONVERSION_RESPONSE_PATH
{"convertedObjects": $newer}
ANSWER
  else
    cat <<ANSWER >$CONVERSION_RESPONSE_PATH
{"failedMessage":"a CronTab could not be converted"}
ANSWER
  fi
}

hook::run $@
