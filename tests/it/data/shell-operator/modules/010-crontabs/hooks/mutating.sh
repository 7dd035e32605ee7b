#!/usr/bin/env bash
# Has the shape of the example of shell-operator for mutating webhooks: one handler for all, and the file of validating answers.

source /shell_lib.sh

function __config__(){
    cat <<CONFIG
configVersion: v1
kubernetesMutating:
- name: set.crontab.replicas
  namespace:
    labelSelector:
      matchLabels:
        name: example-206
  rules:
  - apiGroups:   ["stable.example.com"]
    apiVersions: ["v1"]
    operations:  ["CREATE", "UPDATE"]
    resources:   ["crontabs"]
    scope:       "Namespaced"
CONFIG
}

function __main__() {
  context::jq -r '.review.request.uid'
  PATCH=$( echo '[{"op": "add", "path": "/spec/replicas", "value": 7 }]' | base64 )
  cat <<ANSWER > $VALIDATING_RESPONSE_PATH
{"allowed":true, "patch": "$PATCH"}
ANSWER
}

hook::run $@
