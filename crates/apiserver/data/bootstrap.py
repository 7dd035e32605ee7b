#!/usr/bin/env python3
"""Writes bootstrap.jsonl: the objects that a kube-apiserver makes for itself when it starts, one a line.

    bootstrap.py --server https://127.0.0.1:16443 --token bench-token

Roles and their bindings, API services, flow control and the range of service addresses, without what every server gives
itself (identities, times, revisions, owners of fields). Needs the standard library only.
"""
import argparse, json, os, re, ssl, urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
RBAC = "/apis/rbac.authorization.k8s.io/v1/"
SELECTED = "?labelSelector=kubernetes.io/bootstrapping=rbac-defaults"
PATHS = [RBAC + name + SELECTED for name in ("clusterroles", "clusterrolebindings", "roles", "rolebindings")] + [
    "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "/apis/apiregistration.k8s.io/v1/apiservices?labelSelector=kube-aggregator.kubernetes.io/automanaged=onstart",
    "/apis/networking.k8s.io/v1/servicecidrs",
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", default="https://127.0.0.1:16443")
    parser.add_argument("--token", default="bench-token")
    args = parser.parse_args()
    stable = {tuple(line.split("\t")[:2]) for line in open(os.path.join(HERE, "kinds.tsv")) if not line.startswith("#")}
    with open(os.path.join(HERE, "bootstrap.jsonl"), "w") as out:
        for path in PATHS:
            request = urllib.request.Request(args.server + path, headers={"Authorization": "Bearer " + args.token})
            with urllib.request.urlopen(request, context=ssl._create_unverified_context()) as answer:
                found = json.load(answer)
            for item in found["items"]:
                spec = item.get("spec", {})
                if "apiservices" in path and (spec.get("group", ""), spec["version"]) not in stable:
                    continue
                kept = {name: item["metadata"][name] for name in ("name", "namespace", "labels", "annotations", "generation") if name in item["metadata"]}
                line = json.dumps({"kind": found["kind"][:-4], "apiVersion": found["apiVersion"], **item, "metadata": kept}, sort_keys=True, separators=(",", ":"))
                out.write(re.sub(r"\"20\d\d-[^\"]*Z\"", "\"NOW\"", line) + "\n")


if __name__ == "__main__":
    main()
