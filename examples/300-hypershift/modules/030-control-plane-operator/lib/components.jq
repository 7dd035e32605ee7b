# What is known of a control plane: its release, its components, and which of them are up.
$object.metadata as $its | $values[0].global.hypershift.releases[$object.spec.releaseImage] as $release
| ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "hosted-cluster-config-operator"] as $components
| ["WaitingForEtcd", "WaitingForKubeAPIServer", "WaitingForComponents", "WaitingForComponents", "WaitingForComponents"] as $reasons
| def image: $context.children["Deployment.apps"][.].spec.template.spec.containers[0].image;
  def up: image == $release.image and ($context.children["Deployment.apps"][.] | (.status.availableReplicas // 0) > 0
    and (.status.observedGeneration // 0) >= .metadata.generation);
  def runs($image): {app: .metadata.name} as $labels | .spec = {replicas: 1, selector: {matchLabels: $labels},
    template: {metadata: {labels: $labels}, spec: {containers: [{name: "component", image: $image}]}}}
    | if .metadata.name != "kube-controller-manager" then . else .spec.template.spec |= (
        .volumes = [{name: "ca-bundle", configMap: {name: "kube-controller-manager-ca-bundle"}}]
        | .containers[0].volumeMounts = [{name: "ca-bundle", mountPath: "/etc/kubernetes/ca"}]) end;
