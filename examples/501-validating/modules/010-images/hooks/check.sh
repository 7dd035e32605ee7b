#!/usr/bin/env bash
# Lets no Deployment be written whose images have no tag, or the tag latest.
if [[ "${1:-}" == "--config" ]]; then
  cat <<'CONFIG'
configVersion: v1
kubernetesValidating:
- name: images
  timeoutSeconds: 5
  rules:
  - apiGroups: [apps]
    apiVersions: [v1]
    resources: [deployments]
    operations: [CREATE, UPDATE]
CONFIG
  exit 0
fi

jq '.[0].review.request.object.spec.template.spec
  | [((.initContainers // []) + .containers)[].image | select(test(":[^/]+$") and (endswith(":latest") | not) | not)] as $bad
  | if $bad == [] then {allowed: true}
    else {allowed: false, message: "images need a tag that is not latest: \($bad | join(", "))"} end' \
  "$BINDING_CONTEXT_PATH" > "$VALIDATING_RESPONSE_PATH"
