#!/usr/bin/env python3
"""Rolls a Deployment when a ConfigMap that it names has changed.

A Deployment says `config-checksum: NAME` in its annotations; its pod template gets
the checksum of that ConfigMap as an annotation, and a new checksum is a new rollout.
"""

import hashlib
import json
import os
import sys

ANNOTATION = "config-checksum"

CONFIG = {
    "configVersion": "v1",
    "kubernetes": [
        {
            "name": "deployments",
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "jqFilter": f'.metadata.annotations["{ANNOTATION}"] as $config | select($config != null) | '
            "{namespace: .metadata.namespace, name: .metadata.name, config: $config, "
            f'seen: .spec.template.metadata.annotations["{ANNOTATION}"]}}',
            "keepFullObjectsInMemory": False,
            "group": "rollouts",
        },
        {
            "name": "configs",
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "jqFilter": "{namespace: .metadata.namespace, name: .metadata.name, data, binaryData}",
            "keepFullObjectsInMemory": False,
            "group": "rollouts",
        },
    ],
}


def checksum(config):
    content = json.dumps([config["data"], config["binaryData"]], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def rollouts(snapshots):
    """Yields a patch for each Deployment whose checksum is not that of its ConfigMap."""
    results = {name: [item["filterResult"] for item in items] for name, items in snapshots.items()}
    configs = {(config["namespace"], config["name"]): checksum(config) for config in results["configs"]}
    for deployment in filter(None, results["deployments"]):
        wanted = configs.get((deployment["namespace"], deployment["config"]))
        if wanted and wanted != deployment["seen"]:
            print(f"rolling {deployment['namespace']}/{deployment['name']}")
            yield {
                "operation": "MergePatch",
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "namespace": deployment["namespace"],
                "name": deployment["name"],
                "ignoreMissingObject": True,
                "mergePatch": {"spec": {"template": {"metadata": {"annotations": {ANNOTATION: wanted}}}}},
            }


def main():
    if sys.argv[1:] == ["--config"]:
        json.dump(CONFIG, sys.stdout)
        return
    with open(os.environ["BINDING_CONTEXT_PATH"], encoding="utf-8") as file:
        contexts = json.load(file)
    with open(os.environ["KUBERNETES_PATCH_PATH"], "a", encoding="utf-8") as file:
        # All snapshots of one run are of one moment: the last context knows all.
        for patch in rollouts(contexts[-1]["snapshots"]):
            print(json.dumps(patch), file=file)


if __name__ == "__main__":
    main()
