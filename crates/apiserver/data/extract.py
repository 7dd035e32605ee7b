#!/usr/bin/env python3
"""Derives the data files of this directory, and those of crates/objects, from what a kube-apiserver publishes about itself.

    extract.py --server https://127.0.0.1:16443 --token bench-token --gotypes gotypes.tsv

kinds.tsv    from aggregated discovery (/api and /apis, version v2): one line a kind
../../objects/data/types.txt
             from /openapi/v3 of each group and version, without descriptions, with the Go types that
             gotypes.go prints (error texts name them, they decide which empty values are written, and their order is that of written fields)
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
        return self.get("/api", AGGREGATED)["items"] + self.get("/apis", AGGREGATED)["items"]


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


SPECIAL = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "q", "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "t", "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "u",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "I", "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "F", "io.k8s.apimachinery.pkg.runtime.RawExtension": "*",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Duration": "D", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": "*",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray": "*", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool": "*",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": "*",
}
# Published without a type: schemas, or something else.
SCHEMAS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
SCALARS = {("string", None): "s", ("string", "byte"): "y", ("boolean", None): "b", ("integer", "int32"): "i", ("integer", "int64"): "l", ("integer", None): "l", ("number", "double"): "n", ("number", None): "n"}


class Types:
    """Collects the definitions of all documents and writes them down."""

    def __init__(self, gotypes):
        self.definitions, self.packages = {}, []
        self.go = {}
        for line in open(gotypes):
            owner, field, go, flags, place = line.rstrip("\n").split("\t")
            self.go[owner, field] = (go, flags, place)

    def add(self, document):
        for name, schema in document["components"]["schemas"].items():
            known = self.definitions.setdefault(name, schema)
            gvks = known.setdefault("x-kubernetes-group-version-kind", [])
            gvks += [g for g in schema.get("x-kubernetes-group-version-kind", []) if g not in gvks]

    def reference(self, name):
        if name in SPECIAL:
            return SPECIAL[name]
        package, kind = name.rsplit(".", 1)
        if package not in self.packages:
            self.packages.append(package)
        return "#%d.%s" % (self.packages.index(package), kind)

    def shape(self, schema):
        ref = schema.get("$ref") or (schema.get("allOf") or [{}])[0].get("$ref")
        if ref:
            return self.reference(ref.rsplit("/", 1)[1])
        kind = schema.get("type")
        if kind == "array":
            return "[" + self.shape(schema["items"])
        if kind == "object":
            more = schema.get("additionalProperties")
            return "{" + self.shape(more) if more else "*"
        if kind is None:
            return "*"
        return SCALARS[kind, schema.get("format")]

    def field(self, owner, name, schema, required):
        go, goflags, place = self.go.get((owner, name), ("", "", ""))
        if "z" in goflags:
            goflags += "p"
        flags = ("r" if required else "") + ("p" if "p" in goflags.split("n")[0] else "") + ("o" if "o" in goflags.split("n")[0] else "")
        extras = []
        kind = schema.get("x-kubernetes-list-type")
        if kind == "map":
            extras.append("L=" + ",".join(schema["x-kubernetes-list-map-keys"]))
        elif kind == "set":
            extras.append("S")
        if schema.get("x-kubernetes-map-type") == "atomic":
            extras.append("A")
        strategy = schema.get("x-kubernetes-patch-strategy", "")
        if "merge" in strategy.split(","):
            extras.append("M=" + schema.get("x-kubernetes-patch-merge-key", ""))
        if strategy == "replace":
            extras.append("R")
        if "retainKeys" in strategy.split(","):
            extras.append("K")
        if "default" in schema:
            extras.append("d=" + json.dumps(schema["default"], separators=(",", ":")))
        if "enum" in schema:
            extras.append("e=" + "|".join(schema["enum"]))
        if "nstring" in goflags:
            extras.append("g=" + go)
        if owner == SCHEMAS and name in ("items", "additionalProperties", "additionalItems"):
            extras.append("i=" + self.reference(SCHEMAS))
        if place:
            extras.append("n=" + place)
        return "\t".join([name, flags, self.shape(schema)] + extras)

    def lines(self):
        body = []
        for name, schema in sorted(self.definitions.items()):
            if name in SPECIAL or schema.get("type") not in (None, "object"):
                continue
            if not schema.get("properties") and schema.get("additionalProperties") is None and "x-kubernetes-group-version-kind" not in schema and name.endswith("Patch"):
                continue
            gvks = " ".join("%s/%s/%s" % (g["group"], g["version"], g["kind"]) for g in schema.get("x-kubernetes-group-version-kind", []) if len(schema["x-kubernetes-group-version-kind"]) < 5)
            body.append("\t".join(["=" + self.reference(name)[1:], "A" if schema.get("x-kubernetes-map-type") == "atomic" else "", gvks]))
            required = schema.get("required", [])
            for field, part in sorted(schema.get("properties", {}).items()):
                body.append(self.field(name, field, part, field in required))
        yield "# Made by extract.py. P: packages by number. =type, flags (A atomic), kinds. Fields: name, flags (r required, p pointer, o omitted when empty), type, more."
        for number, package in enumerate(self.packages):
            yield "P%d\t%s" % (number, package)
        yield from body


def types(source, kinds, gotypes):
    found = Types(gotypes)
    for gv in sorted({tuple(k.split("\t")[:2]) for k in kinds if not k.startswith("#")}):
        found.add(source.get("/openapi/v3/" + ("apis/%s/%s" % gv if gv[0] else "api/" + gv[1])))
    return found.lines()


def write(name, lines):
    with open(os.path.join(HERE, name), "w") as out:
        out.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", default="https://127.0.0.1:16443")
    parser.add_argument("--token", default="bench-token")
    parser.add_argument("--gotypes", required=True)
    args = parser.parse_args()
    source = Source(args)
    table = list(kinds(source))
    write("kinds.tsv", table)
    write("../../objects/data/types.txt", types(source, table, args.gotypes))


if __name__ == "__main__":
    sys.exit(main())
