#!/usr/bin/env python3
"""Derives data/protobuf.txt, the numbers of the fields of built-in types, from the Go modules of Kubernetes.

    protobuf.py ~/go/pkg/mod/k8s.io v0.34.2 < kinds.tsv > protobuf.txt

Lines that begin with "=" name a message. Others are its fields: number, name, type. Types: s string, y bytes,
b boolean, i integer, d floating point number, or a message; "*" before it: many; "{": a map from strings to it;
"!": its fields are those of the message around it.
"""
import re, sys
from pathlib import Path

base, version = Path(sys.argv[1]), sys.argv[2]
groups = {(line.split("\t")[0].split(".")[0] or "core", line.split("\t")[1]) for line in sys.stdin if not line.startswith("#")}
groups |= {("autoscaling", "v1"), ("policy", "v1"), ("authentication", "v1")}
places = {}
for group, v in sorted(groups):
    module, path = f"api@{version}", f"{group}/{v}"
    if group == "apiextensions":
        module, path = f"apiextensions-apiserver@{version}", f"pkg/apis/apiextensions/{v}"
    if group == "apiregistration":
        module, path = f"kube-aggregator@{version}", f"pkg/apis/apiregistration/{v}"
    places[f"{group}.{v}"] = base / module / path
for name, path in {"meta.v1": "pkg/apis/meta/v1", "resource": "pkg/api/resource", "intstr": "pkg/util/intstr", "runtime": "pkg/runtime"}.items():
    places[name] = base / f"apimachinery@{version}" / path
SCALAR = {"string": "s", "bytes": "y", "bool": "b", "int32": "i", "int64": "i", "uint32": "i", "uint64": "i", "double": "d"}


# Where the number's name is another one than the field's in JSON, and where tags of fields are written in another way.
NAMES = {"uID": "uid", "aPIGroup": "apiGroup", "Webhooks": "webhooks", "Expression": "expression", "Name": "name"}
INLINED = {"ephemeralContainerCommon", "deviceConfiguration"}


def json_name(message, name):
    name = NAMES.get(name, name)
    if message != "JSONSchemaProps":
        return name
    if name in ("ref", "schema"):
        return "$" + name
    if name.startswith("xKubernetes"):
        return re.sub("([A-Z])", lambda letter: "-" + letter[1].lower(), name)
    return name


def short(package, kind):
    kind = kind.lstrip(".")
    if kind in SCALAR:
        return SCALAR[kind]
    if "." not in kind:
        return f"{package}.{kind}"
    parts = kind.split(".")
    tail = parts[-3:] if re.fullmatch(r"v\d+", parts[-2]) else parts[-2:]
    return ".".join(tail)


for package, path in places.items():
    inlined = {}
    struct = None
    for go in sorted(path.glob("*.go")):
        if go.name.startswith("zz_") or go.name == "generated.pb.go":
            continue
        for line in go.read_text().splitlines():
            if found := re.match(r"type (\w+) struct {", line):
                struct = found[1]
            if found := re.search(r'json:",inline" protobuf:"bytes,\d+,opt,name=(\w+)"', line):
                inlined.setdefault(struct, set()).add(found[1])
    message = None
    for line in (path / "generated.proto").read_text().splitlines():
        if found := re.match(r"message (\w+) {", line):
            message = found[1]
            print(f"={package}.{message}")
        elif found := re.match(r"\s+map<string, ([\w.]+)> (\w+) = (\d+);", line):
            print(f"{found[3]} {found[2]} {{{short(package, found[1])}")
        elif found := re.match(r"\s+(optional|repeated) ([\w.]+) (\w+) = (\d+)( \[packed.*\])?;", line):
            many = "*" if found[1] == "repeated" else ""
            mark = "!" if found[3] in inlined.get(message, set()) | INLINED else ""
            print(f"{found[4]} {json_name(message, found[3])} {mark}{many}{short(package, found[2])}")
