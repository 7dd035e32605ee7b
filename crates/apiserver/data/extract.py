#!/usr/bin/env python3
"""Derives the data files of this directory from what a kube-apiserver publishes about itself.

    extract.py --server https://127.0.0.1:16443 --token bench-token     asks a running server
    extract.py --discovery FILE --swagger FILE                          reads saved answers

kinds.tsv    from aggregated discovery (/api and /apis, version v2): one line a kind
Only stable versions (v1, v2, …) are kept. Needs the standard library only.
"""
import argparse, json, os, re, ssl, sys, urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERBS = {"create": "c", "delete": "d", "deletecollection": "D", "get": "g", "list": "l", "patch": "p", "update": "u", "watch": "w"}


class Source:
    def __init__(self, args):
        self.args = args

    def get(self, path, accept="application/json"):
        request = urllib.request.Request(self.args.server + path, headers={"Accept": accept, "Authorization": "Bearer " + self.args.token})
        context = ssl._create_unverified_context()
        with urllib.request.urlopen(request, context=context) as answer:
            return json.load(answer)

    def discovery(self):
        if self.args.discovery:
            core = {"metadata": {}, "versions": [{"version": "v1", "resources": core_resources(json.load(open(os.path.join(os.path.dirname(self.args.discovery), "api__v1.json"))))}]}
            return [core] + json.load(open(self.args.discovery))["items"]
        return self.get("/api", AGGREGATED)["items"] + self.get("/apis", AGGREGATED)["items"]

    def swagger(self):
        if self.args.swagger:
            return json.load(open(self.args.swagger))
        return self.get("/openapi/v2")


def core_resources(legacy):
    """Turns an APIResourceList into the shape of aggregated discovery."""
    out = []
    for r in legacy["resources"]:
        entry = {"responseKind": {"group": r.get("group", ""), "version": r.get("version", ""), "kind": r["kind"]}, "verbs": r["verbs"]}
        if "/" in r["name"]:
            parent, sub = r["name"].split("/", 1)
            owner = next((o for o in out if o["resource"] == parent), None)
            if owner is None:
                continue
            owner.setdefault("subresources", []).append(dict(entry, subresource=sub))
        else:
            out.append(dict(entry, resource=r["name"], singularResource=r["singularName"], scope="Namespaced" if r["namespaced"] else "Cluster",
                            shortNames=r.get("shortNames", []), categories=r.get("categories", [])))
    return out


def letters(verbs):
    return "".join(VERBS[v] for v in verbs)


def kinds(source):
    """Lines of kinds.tsv, in the order of discovery."""
    yield "# Made by extract.py: group, version, kind, plural, singular, scope, verbs, short names, categories, subresources (name:verbs[:kind[:group/version]])"
    for group in source.discovery():
        for version in group["versions"]:
            if not re.fullmatch(r"v\d+", version["version"]):
                continue
            gv = (group["metadata"].get("name", ""), version["version"])
            for r in version["resources"]:
                subs = []
                for s in r.get("subresources", []):
                    kind = s.get("responseKind", {})
                    text = s["subresource"] + ":" + letters(s["verbs"])
                    foreign = (kind.get("group") or "", kind.get("version") or "") not in (("", ""), gv)
                    if kind.get("kind") != r["responseKind"]["kind"] or foreign:
                        text += ":" + kind.get("kind", "")
                    if foreign:
                        text += ":" + kind["group"] + "/" + kind["version"]
                    subs.append(text)
                yield "\t".join([gv[0], gv[1], r["responseKind"]["kind"], r["resource"], r.get("singularResource", ""), r["scope"][0], letters(r["verbs"]),
                                 ",".join(r.get("shortNames", [])), ",".join(r.get("categories", [])), ",".join(subs)])


def write(name, lines):
    with open(os.path.join(HERE, name), "w") as out:
        out.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server")
    parser.add_argument("--token", default="bench-token")
    parser.add_argument("--discovery")
    parser.add_argument("--swagger")
    source = Source(parser.parse_args())
    write("kinds.tsv", kinds(source))


if __name__ == "__main__":
    sys.exit(main())
