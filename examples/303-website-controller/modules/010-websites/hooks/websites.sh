#!/usr/bin/env bash
# A controller in bash: each Website becomes a ConfigMap with its page and a Deployment that serves it.
source /shell_lib.sh

__config__() {
  cat <<'CONFIG'
configVersion: v1
kubernetes:
- name: websites
  apiVersion: example.com/v1
  kind: Website
  # What is written into the status does not bring the hook back.
  jqFilter: "{metadata: (.metadata | {name, namespace, uid, generation}), spec}"
  keepFullObjectsInMemory: false
  queue: websites
CONFIG
}

# Programs for one Website: what should exist, and its status.
WEBSITE='
def owned: {
  name: .metadata.name, namespace: .metadata.namespace, labels: {website: .metadata.name},
  ownerReferences: [{apiVersion: "example.com/v1", kind: "Website", name: .metadata.name, uid: .metadata.uid, controller: true}]
};
def page: {apiVersion: "v1", kind: "ConfigMap", metadata: owned, data: {"index.html": .spec.text}};
def server: {apiVersion: "apps/v1", kind: "Deployment", metadata: owned, spec: {
  replicas: (.spec.replicas // 1),
  selector: {matchLabels: {website: .metadata.name}},
  template: {
    metadata: {labels: {website: .metadata.name}, annotations: {"checksum/page": (.spec.text | @base64)}},
    spec: {
      containers: [{
        name: "web", image: "nginx:1.27-alpine", ports: [{containerPort: 80}],
        volumeMounts: [{name: "page", mountPath: "/usr/share/nginx/html"}]
      }],
      volumes: [{name: "page", configMap: {name: .metadata.name}}]
    }
  }
}};
def status: {
  operation: "MergePatch", apiVersion: "example.com/v1", kind: "Website", subresource: "status",
  namespace: .metadata.namespace, name: .metadata.name, ignoreMissingObject: true,
  mergePatch: {status: {phase: "Deployed", observedGeneration: .metadata.generation}}
};
def deployed: (page, server | {operation: "CreateOrUpdate", object: .}), status;
'

__on_kubernetes::websites::synchronization() {
  context::jq -c "${WEBSITE} .objects[].filterResult | deployed" >> "${KUBERNETES_PATCH_PATH}"
}

__on_kubernetes::websites::added_or_modified() {
  context::jq -c "${WEBSITE} .filterResult | deployed" >> "${KUBERNETES_PATCH_PATH}"
  echo "website $(context::get filterResult.metadata.name) is deployed"
}

__on_kubernetes::websites::deleted() {
  context::jq -c '.filterResult.metadata as $of
    | {apiVersion: "v1", kind: "ConfigMap"}, {apiVersion: "apps/v1", kind: "Deployment"}
    | . + {operation: "DeleteInBackground", namespace: $of.namespace, name: $of.name}' >> "${KUBERNETES_PATCH_PATH}"
}

hook::run "$@"
