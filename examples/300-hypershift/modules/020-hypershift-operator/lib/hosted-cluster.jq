# What is known of a HostedCluster, and the words in which its hook says what should be.
$object.spec as $spec | $object.status as $status | $object.metadata.name as $name | $object.metadata.namespace as $home
| ("\($home)-\($name)" | gsub("\\."; "-")) as $space | "hypershift.openshift.io/v1alpha1" as $api | $object.metadata.annotations as $notes
| ($spec.infraID // $status.infraID // ($object.metadata.uid | hashed($name[0:20]; 30))) as $infra
| $values[0].global.hypershift.releases[$spec.release.image] as $release
| ($notes["hypershift.openshift.io/infra-id"] // "" | split(" ")) as [$given, $holder] | $notes["hypershift.openshift.io/namespace-taken-by"] as $taken
# Until when, in seconds from now; null if nobody can read it.
| ($spec.pausedUntil // "false" | [(., "\(.)T00:00:00Z" | fromdateiso8601? - now), {"true": infinite, "false": 0}[.]][0]) as $pause
| [["pullSecret", "pull-secret"], ["sshKey", "ssh-key"], ["providerCreds", "provider-creds"] | select($spec[.[0]])] as $secrets
| [$secrets[] | $spec[.[0]].name | select($context.related.secrets[.] == null)] as $missing
| $context.children as $living | $living.Namespace[$space].metadata as $its
| $living["Cluster.cluster.x-k8s.io"]["\($space)/\($infra)"] as $cluster | $context.related.kubeconfigs["\($space)/admin-kubeconfig"] as $kubeconfig
| $living["HostedControlPlane.hypershift.openshift.io"]["\($space)/\($name)"] as $control | ($control.status // {}) as $plane
# Whoever writes in another namespace has no pools of this cluster.
| ($living["NodePool.hypershift.openshift.io"] + $context.related.pools
    | with_entries(select(.value | .metadata.namespace == $home and .spec.clusterName == $name))) as $pools
| ($cluster.status | .controlPlaneReady == true and .infrastructureReady == true) as $ready | ($ready and $plane.version == $release.version) as $rolled_out
| (if ($space | length) > 63 then ["NameTooLong", "\($space) has more than 63 characters"]
   elif $pause == null then ["UnknownTime", "pausedUntil \($spec.pausedUntil) is neither \"true\" nor a time such as 2030-01-31T00:00:00Z"]
   elif $taken then ["NamespaceInUse", "\($space) belongs to \($taken)"]
   elif $release == null then ["UnknownRelease", "\($spec.release.image) is not in global.hypershift.releases"]
   elif $spec.infraID and $given == $infra and $holder != "\($home)/\($name)" then ["InfraIDInUse", "\($infra) belongs to HostedCluster \($holder)"]
   elif $missing != [] then ["MissingSecret", "Secret \($missing[0]) is not in \($home)"] else null end) as $wrong |
# An object in the namespace of the control plane, which names its cluster.
def within($version; $kind; $named): child($version; $kind; $named)
  | .metadata += {namespace: $space, annotations: {"hypershift.openshift.io/cluster": "\($home)/\($name)"}};
# One of the operators of the control plane, of the release of its cluster.
def operates: {app: .metadata.name} as $labels | .metadata.annotations["hypershift.openshift.io/release-image"] = $spec.release.image
  | (select(.metadata.name == "control-plane-operator") | .metadata.labels) = {"hypershift.openshift.io/control-plane": $name}
  | .spec = {replicas: 1, selector: {matchLabels: $labels},
      template: {metadata: {labels: $labels}, spec: {containers: [{name: "operator", image: $release.image}]}}};
# The history of releases, the last one first.
def rolled($done): (. // []) | if (.[0].image // "") == $spec.release.image then . else
    [{state: "Partial", version: $release.version, image: $spec.release.image, startedTime: (now | todate)}] + .[0:9] end
  | if $done and .[0].state == "Partial" then .[0] += {state: "Completed", completionTime: (now | todate)} else . end;
def valid: condition("ValidConfiguration", "ReconciliationActive"; true; "AsExpected"; "");
# The control plane is paused with its cluster, and goes on with it.
def pauses: (if $pause > 0 then $spec.pausedUntil else null end) as $until | $control | select(. and .spec.pausedUntil != $until)
  | {operation: "MergePatch", ignoreMissingObject: true, apiVersion, kind} + (.metadata | {name, namespace}) + {mergePatch: {spec: {pausedUntil: $until}}};
def lacks($reason; $what): condition("Available"; false; $reason; "waits for \($what | ltrimstr("waits for "))");
