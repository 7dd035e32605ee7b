#!/usr/bin/env bash
# Has the shape of the example of shell-operator for validating webhooks: a handler that bears the name of the webhook.

source /shell_lib.sh

function __config__(){
    cat <<CONFIG
configVersion: v1
kubernetesValidating:
- name: registry-policy.example.com
  namespace:
    labelSelector:
      matchLabels:
        name: example-204
  rules:
  - apiGroups:   ["stable.example.com"]
    apiVersions: ["v1"]
    operations:  ["CREATE", "UPDATE"]
    resources:   ["crontabs"]
    scope:       "Namespaced"
CONFIG
}

function __on_validating::registry-policy.example.com() {
  from=$(context::jq -r '.review.request.object.spec.image')
  if [[ $from == registry.example.com/* ]] ; then
    echo '{"allowed":true}' > $VALIDATING_RESPONSE_PATH
  else
    cat <<ANSWER > $VALIDATING_RESPONSE_PATH
{"allowed":false, "message":"$from is of another registry"}
ANSWER
  fi
}

hook::run $@
