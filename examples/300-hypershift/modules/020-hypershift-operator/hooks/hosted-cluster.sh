#!/usr/bin/env bash
# HostedCluster: a namespace with the operators of its control plane, and what they work on.
source /shell_lib.sh

__config__() {
  cat <<'CONFIG'
configVersion: v1
reconcile:
- name: hosted-cluster
  apiVersion: hypershift.openshift.io/v1alpha1
  kind: HostedCluster
  finalizer: hypershift.openshift.io/finalizer
  queue: hosted-cluster
  concurrency: 4
  children:
  - {apiVersion: v1, kind: Namespace}
  - {apiVersion: v1, kind: Secret}
  - {apiVersion: apps/v1, kind: Deployment}
  - {apiVersion: cluster.x-k8s.io/v1alpha4, kind: Cluster, update: OnDelete}
  - {apiVersion: hypershift.openshift.io/v1alpha1, kind: HostedControlPlane}
  - {apiVersion: hypershift.openshift.io/v1alpha1, kind: ExternalInfraCluster}
  - {apiVersion: hypershift.openshift.io/v1alpha1, kind: NodePool, update: OnDelete}
  related:
  - {name: secrets, apiVersion: v1, kind: Secret, namedBy: [spec.pullSecret.name, spec.sshKey.name, spec.providerCreds.name]}
  - {name: kubeconfigs, apiVersion: v1, kind: Secret, parentAnnotation: hypershift.openshift.io/cluster}
  - {name: pools, apiVersion: hypershift.openshift.io/v1alpha1, kind: NodePool, parentAnnotation: hypershift.openshift.io/cluster, jqFilter: .metadata.name}
CONFIG
}

__on_reconcile::hosted-cluster() {
  reconcile::jq --slurpfile values "${VALUES_PATH}" '
    $object.spec as $spec | $object.status as $status | $object.metadata.name as $name | $object.metadata.namespace as $home
    | ("\($home)-\($name)" | gsub("\\."; "-")) as $space | "hypershift.openshift.io/v1alpha1" as $api
    | ($spec.infraID // $status.infraID // ($object.metadata.uid | hashed($name[0:20]; 30))) as $infra
    | $values[0].global.hypershift.releases[$spec.release.image] as $release
    | ($object.metadata.annotations["hypershift.openshift.io/infra-id"] // "" | split(" ")) as [$given, $holder]
    | ($spec.pausedUntil // "false" | if . == "true" then infinite else (try fromdateiso8601 catch 0) - now end) as $pause
    | [["pullSecret", "pull-secret"], ["sshKey", "ssh-key"], ["providerCreds", "provider-creds"] | select($spec[.[0]])] as $secrets
    | def within($version; $kind; $named): child($version; $kind; $named) | .metadata += {namespace: $space, annotations: {"hypershift.openshift.io/cluster": "\($home)/\($name)"}};
      def living: . as $one | $context.children | to_entries[] | select(.key | split(".")[0] == $one.kind) | .value
        | .[$one.metadata.name] // .["\($one.metadata.namespace)/\($one.metadata.name)"];
      def valid: condition("ValidConfiguration", "ReconciliationActive"; true; "AsExpected"; "");
      def lacks($reason; $what): condition("Available"; false; $reason; "waits for \($what | ltrimstr("waits for "))");
      def operates: {app: .metadata.name} as $labels | .metadata.annotations["hypershift.openshift.io/release-image"] = $spec.release.image
        | (select(.metadata.name == "control-plane-operator") | .metadata.labels) = {"hypershift.openshift.io/control-plane": $name} | .spec = {replicas: 1, selector: {matchLabels: $labels},
        template: {metadata: {labels: $labels}, spec: {containers: [{name: "operator", image: $release.image}]}}};
      def rolled($done): (. // []) | if (.[0].image // "") == $spec.release.image then . else
          [{state: "Partial", version: $release.version, image: $spec.release.image, startedTime: (now | todate)}] + .[0:9] end
        | if $done and .[0].state == "Partial" then .[0] += {state: "Completed", completionTime: (now | todate)} else . end;
    [$secrets[] | $spec[.[0]].name | select($context.related.secrets[.] == null)] as $missing
    | (if ($space | length) > 63 then ["NameTooLong", "\($space) has more than 63 characters"]
       elif $release == null then ["UnknownRelease", "\($spec.release.image) is not in global.hypershift.releases"]
       elif $spec.infraID and $given == $infra and $holder != "\($home)/\($name)" then ["InfraIDInUse", "\($infra) belongs to HostedCluster \($holder)"]
       elif $missing != [] then ["MissingSecret", "Secret \($missing[0]) is not in \($home)"]
       else null end) as $wrong
    | [{apiVersion: "v1", kind: "Namespace", metadata: {name: $space, labels: {"hypershift.openshift.io/hosted-control-plane": "true"}}},
       ($secrets[] as [$field, $copy] | $context.related.secrets[$spec[$field].name] | select(.)
        | child("v1"; "Secret"; $copy) + {type, data} | .metadata.namespace = $space),
       (within("apps/v1"; "Deployment"; "control-plane-operator", "cluster-api", "capi-provider") | operates),
       (within("cluster.x-k8s.io/v1alpha4"; "Cluster"; $infra) | .spec = {
          controlPlaneRef: {apiVersion: $api, kind: "HostedControlPlane", name: $name, namespace: $space},
          infrastructureRef: {apiVersion: $api, kind: "ExternalInfraCluster", name: $name, namespace: $space}}),
       (within($api; "HostedControlPlane", "ExternalInfraCluster"; $name)
        | .metadata.labels = {"cluster.x-k8s.io/cluster-name": $infra, "hypershift.openshift.io/infrastructure": $name}
        | .spec = if .kind == "HostedControlPlane" then {releaseImage: $spec.release.image, infraID: $infra, platform: ($spec.platform // {})}
            + ($spec.networking // {}) + ([$secrets[] | {(.[0]): {name: .[1]}}] | add // {})
          else {region: ([$spec.platform[]?.region] | first // ""), computeReplicas: $spec.initialComputeReplicas} end),
       # The first pool is made once: who deletes it wants none.
       (child($api; "NodePool"; $name) | .metadata.annotations = {"hypershift.openshift.io/cluster": $name}
        | .spec = {clusterName: $name, nodeCount: $spec.initialComputeReplicas, platform: (($spec.platform // {}) | map_values(.nodePoolDefaults // {}))}
        | select($spec.initialComputeReplicas > 0 and (living or ($status.initialNodePool | not)))),
       ($context.related.kubeconfigs["\($space)/admin-kubeconfig"] | select(.) | child("v1"; "Secret"; "\($name)-admin-kubeconfig") + {type, data})] as $all
    | [("Cluster", "HostedControlPlane") as $kind | [$all[] | select(.kind == $kind) | living.status] | first // {}] as [$cluster, $plane]
    | ($cluster.controlPlaneReady == true and $cluster.infrastructureReady == true) as $ready | .children.Namespace[$space].metadata as $its
    | ([$plane.conditions[]? | select(.type == "Available" and .status != "True")] | first) as $why
    | if .type == "Finalize" then
        # Machines outlive neither their pools nor the operators that remove them.
        first((("NodePool", "Cluster", "HostedControlPlane") as $kind | select(any($all[]; .kind == $kind and living)
          or ($kind == "NodePool" and $context.related.pools != {})) | $kind), null) as $stage
        # Pools that people made go first, too.
        | (if $stage == null then {finalized: true} else {children: [$all[] | select(living and .kind != $stage)], conditions: [lacks("Deleting"; "the end of \($stage)")]} end),
          ($context.related.pools[] | gone)
      elif $pause > 0 then {conditions: [condition("ReconciliationActive"; false; "Paused"; "until \($spec.pausedUntil)")],
        requeueAfter: (if $pause < 86400 then "\($pause | ceil)s" else null end)}
      elif $wrong then {conditions: [condition("ValidConfiguration"; false; $wrong[0]; $wrong[1]), (valid | select(.type == "ReconciliationActive")),
        condition(if $status.ready then empty else "Available" end; false; $wrong[0]; $wrong[1])]}
      elif $spec.infraID and $given != $infra then {conditions: [valid, lacks("WaitingForInfrastructure"; "infraID \($infra)")]}
      elif $its.deletionTimestamp then {status: (($status // {}) + {ready: false} | del(.conditions)), conditions: [valid, lacks("NamespaceTerminating"; "the end of Namespace \($space)")]}
      else {children: $all,
        status: ({ready: $ready, infraID: $infra, namespace: $space,
            initialNodePool: ($spec.initialComputeReplicas > 0 or $status.initialNodePool == true),
            version: {desired: {image: $spec.release.image}, history: ($status.version.history | rolled($ready and $plane.version == $release.version))}}
          + if any($all[]; .metadata.name == "\($name)-admin-kubeconfig") then {kubeconfig: {name: "\($name)-admin-kubeconfig"}} else {} end),
        conditions: [valid, (if $ready then condition("Available"; true; "AsExpected"; "")
            elif $its == null then lacks("WaitingForNamespace"; "Namespace \($space)")
            elif $plane.ready then lacks("WaitingForInfrastructure"; "ExternalInfraCluster \($name)")
            else lacks($why.reason // "WaitingForControlPlane"; $why.message // "HostedControlPlane \($name)") end),
          condition("Progressing"; ($ready and $plane.version == $release.version) | not; "AsExpected"; "")]} end'
}

hook::run "$@"
