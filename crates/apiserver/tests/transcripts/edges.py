"""Writes that few clients send: changes that make an object, finalizers without a domain, strict patches, empty lists, schemas with keywords that say nothing."""
import json

from scripts import BASE, CM, G, changed, definition, foo, step

U = "00000000-0000-4000-8000-000000000000"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WAIT = [step("WAIT", "/apis/{u}.io/v1")]
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}, "l": {"type": "array", "items": {"type": "string"}}}}
STATUS = dict(subresources={"status": {}})
KINDS = {kind: base for kind, base in BASE.items() if kind != "crd"}


def named(path, body):
    return path + "/" + body["metadata"]["name"]


def made_by_change():
    for kind, (path, body) in KINDS.items():
        at, meta = named(path, body), lambda **more: changed(body, {"metadata." + key: value for key, value in more.items()})
        steps = [step("PUT", at + "?dryRun=All", meta(resourceVersion="5")), step("PUT", at, meta(resourceVersion="x")), step("PUT", at, meta(uid=U)), step("PUT", at, meta(uid=U, resourceVersion="5")),
                 step("PUT", at, meta(resourceVersion="5")), step("POST", path + "?dryRun=All", meta(resourceVersion="x", name=body["metadata"]["name"] + "b")), step("POST", path, body), step("PUT", at, meta(uid=U)), step("PUT", at, meta(resourceVersion="x")),
                 step("PATCH", at, {"metadata": {"resourceVersion": "x"}}, "merge"), step("PATCH", at, {"metadata": {"resourceVersion": "5"}}, "merge"), step("PUT", at, meta(resourceVersion="0"))]
        yield "change-" + kind, steps


def nameless():
    for kind in ("cm", "dep", "role", "lr", "pc"):
        path, body = KINDS[kind]
        api = path.split("/namespaces")[0].rsplit("/", 1)[0] if "/namespaces" not in path else path.split("/namespaces")[0]
        whole = dict(changed(body, {}), apiVersion="/".join(api.split("/")[2:]), kind={"cm": "ConfigMap", "dep": "Deployment", "role": "Role", "lr": "LimitRange", "pc": "PriorityClass"}[kind])
        without = json.loads(json.dumps(whole))
        del without["metadata"]["name"]
        at = named(path, body) + "?fieldManager=one"
        yield "nameless-" + kind, [step("PATCH", at, without, "apply"), step("PATCH", at, dict(without, metadata={"generateName": "x"}), "apply"), step("PATCH", at, whole, "apply"), step("PATCH", at, without, "apply"), step("PUT", at, without), step("POST", path, dict(whole, metadata={}))]
    without = foo({})
    without["metadata"] = {"labels": {"a": "b"}}
    yield "nameless-foo", [definition(SCHEMA)] + WAIT + [step("PATCH", G + "/a?fieldManager=one", without, "apply"), step("PATCH", G + "/a?fieldManager=one", foo({}), "apply"), step("PATCH", G + "/a?fieldManager=one", without, "apply"), step("POST", G, without)]


def finalizers():
    bad = [["bad"], ["bad.io"], ["a b"], ["orphan"], ["kubernetes"], ["customresourcecleanup.apiextensions.k8s.io"], ["x.io/y"], ["x.io/y/z"]]
    for kind, (path, body) in KINDS.items():
        at = named(path, body)
        steps = [step("POST", path + "?dryRun=All", changed(body, {"metadata.finalizers": names})) for names in bad] + [step("POST", path, body)]
        steps += [step("PATCH", at + part + "?dryRun=All", {"metadata": {"finalizers": ["bad"]}}, "merge") for part in ("", "/status")]
        yield "finalizers-" + kind, steps
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    kinds = {"metadata": {"name": "foos.{u}.io"}, "spec": {"group": "{u}.io", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"}, "versions": [version]}}
    service = {"metadata": {"name": "v1.{u}.io"}, "spec": {"group": "{u}.io", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10, "service": {"name": "a", "namespace": "b"}}}
    policy = {"metadata": {"name": "{u}"}, "spec": {"matchConstraints": {"resourceRules": [{"apiGroups": ["x.{u}.io"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["none"]}]}, "validations": [{"expression": "true"}]}}
    binding = {"metadata": {"name": "{u}"}, "spec": {"policyName": "{u}", "validationActions": ["Deny"]}}
    admission = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    for name, path, body in (("crd", DEFINITIONS, kinds), ("service", "/apis/apiregistration.k8s.io/v1/apiservices", service), ("policy", admission + "ies", policy), ("binding", admission + "ybindings", binding)):
        yield "finalizers-" + name, [step("POST", path + "?dryRun=All", changed(body, {"metadata.finalizers": names})) for names in bad]
    steps = [step("POST", G + "?dryRun=All", foo({}, finalizers=names)) for names in bad + [["bad", "worse"], ["bad", "bad"]]]
    steps += [step("POST", G, foo({}, finalizers=["bad"])), step("PATCH", G + "/a", {"metadata": {"labels": {"a": "b"}}}, "merge"), step("PATCH", G + "/a", {"metadata": {"finalizers": ["bad", "worse.io", "x.io/y"]}}, "merge"), step("PATCH", G + "/a/status", {"metadata": {"finalizers": ["other"]}, "status": {"a": 1}}, "merge"), step("PATCH", G + "/a?fieldManager=one", foo({}, finalizers=["applied"]), "apply"), step("PATCH", G + "/a", {"metadata": {"finalizers": None}}, "merge")]
    yield "finalizers-foo", [definition(SCHEMA, **STATUS)] + WAIT + steps


def strict():
    operations = lambda path, **more: [dict({"op": "add", "path": path, "value": 1}, **more)]
    targets = {"cm": [CM, BASE["cm"][1], "data", "bogus"], "dep": [BASE["dep"][0], BASE["dep"][1], "spec", "bogus"], "foo": [G, foo({"a": "x"}), "spec", "bogus"]}
    for name, (path, body, field, key) in targets.items():
        steps = [definition(SCHEMA, **STATUS)] + WAIT + [step("POST", path, body)]
        at = path + "/a"
        for mode in ("Strict", "Warn", "Ignore"):
            query = "?dryRun=All&fieldValidation=" + mode
            deep = {"bogus": 1} if name == "cm" else {field: {"bogus": 1, "b": {"c": 1}}}
            for kind in ("merge", "strategic"):
                steps += [step("PATCH", at + query, deep, kind), step("PATCH", at + query, '{"metadata":{"labels":{"a":"b","a":"c"}}}', kind), step("PATCH", at + query, '{"metadata":{"labels":{"a":"b","a":"c"}},"bogus":1}', kind), step("PATCH", at + query, {"metadata": {"bogus": 1, "labels": {"q": "<&>"}}}, kind)]
            steps += [step("PATCH", at + query, operations("/bogus"), "json"), step("PATCH", at + query, operations("/metadata/bogus"), "json"), step("PATCH", at + query, operations("/bogus", more=1), "json"), step("PATCH", at + query, '[{"op":"add","op":"add","path":"/metadata/labels","value":{"a":"b"}}]', "json"), step("PATCH", at + query, operations("/metadata/labels", value={"a": "b"}, more=1), "json")]
            steps += [step("PATCH", at + "?fieldManager=one&dryRun=All&force=true&fieldValidation=" + mode, {"apiVersion": {"cm": "v1", "dep": "apps/v1", "foo": "{u}.io/v1"}[name], "kind": {"cm": "ConfigMap", "dep": "Deployment", "foo": "Foo"}[name], "metadata": {"name": "a"}, field: {"bogus": "1"}}, "apply")]
        steps += [step("PATCH", at + "/status?dryRun=All&fieldValidation=Strict", {"status": {"bogus": 1}, "other": 1}, "merge")] if name != "cm" else []
        yield "strict-" + name, steps


def statuses():
    for kind in ("dep", "sts", "ds", "rs", "job", "cj", "ing", "pdb", "pod", "rc", "svc", "node", "pv", "hpa"):
        path, body = KINDS[kind]
        at = named(path, body)
        yield "status-" + kind, [step("POST", path, body)] + [step("PATCH", at + part, {"metadata": {"annotations": {"a": value}, "labels": {"a": value}}}, "merge") for part, value in (("/status", "1"), ("", "2"), ("/status", "3"))] + [step("PUT", at + "/status", changed(body, {"metadata.annotations": {"a": "4"}})), step("GET", at)]
    part = lambda manager, query="", **more: step("PATCH", G + "/a/status?fieldManager=" + manager + query, dict({"apiVersion": "{u}.io/v1", "kind": "Foo", "metadata": {"name": "a", "labels": {"x": manager}, "annotations": {"y": "z"}}}, **more), "apply")
    yield "status-foo", [definition(SCHEMA, **STATUS)] + WAIT + [step("POST", G, foo({"a": "x"}, labels={"x": "made"})), part("one", status={"a": 1}), part("one", "&force=true", status={"a": 1}), part("two", status={"b": 1}), part("two", "&force=true", status={"b": 1}),
        step("PATCH", G + "/a/status?fieldManager=three", {"metadata": {"labels": {"x": "three", "w": "v"}}, "status": {"c": 1}}, "merge"), step("PUT", G + "/a/status?fieldManager=four", dict(foo({"a": "y"}, labels={"x": "four"}, resourceVersion="{rv:7}"), status={"d": 1})), part("one", spec={"a": "q"}), step("GET", G + "/a")]


def empties():
    role, crole, lr, eps, csin = (KINDS[kind] for kind in ("role", "crole", "lr", "eps", "csin"))
    applied = lambda path, manager, body, query="": step("PATCH", path + "?fieldManager=" + manager + query, body, "apply")
    rbac = lambda rules: {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "a"}, "rules": rules}
    at = role[0] + "/a"
    yield "empty-rules", [step("POST", role[0] + "?dryRun=All", rbac([])), step("POST", role[0], rbac([])), step("GET", at), step("PUT", at, rbac([])), step("PATCH", at, {"rules": []}, "merge"), applied(at, "one", rbac([])), applied(at, "two", rbac([])), applied(at, "two", rbac([]), "&force=true"), applied(at, "two", rbac([])), step("GET", role[0])]
    yield "empty-applied", [applied(at, "one", rbac([])), applied(at, "one", rbac([])), applied(at, "two", rbac([])), step("PATCH", at, {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}, "merge"), step("PATCH", at, {"rules": []}, "merge"), step("PATCH", at, [{"op": "replace", "path": "/rules", "value": []}], "json")]
    limits = {"metadata": {"name": "a"}, "spec": {"limits": []}}
    yield "empty-limits", [step("POST", lr[0], limits), step("GET", lr[0] + "/a"), step("PUT", lr[0] + "/a", limits), step("POST", lr[0], {"metadata": {"generateName": "x-"}, "spec": {"limits": []}})]
    yield "empty-endpoints", [step("POST", eps[0], changed(eps[1], {"endpoints": [], "ports": []})), step("GET", eps[0] + "/a"), step("PATCH", eps[0] + "/a", {"endpoints": []}, "merge")]
    yield "empty-drivers", [step("POST", csin[0], changed(csin[1], {"spec": {"drivers": []}})), step("GET", csin[0] + "/{u}"), step("DELETE", csin[0] + "/{u}")]
    yield "empty-others", [step("POST", KINDS["np"][0], {"metadata": {"name": "a"}, "spec": {"podSelector": {}, "ingress": [], "egress": [], "policyTypes": []}}), step("POST", KINDS["rb"][0], changed(KINDS["rb"][1], {"subjects": []})), step("POST", KINDS["sa"][0], {"metadata": {"name": "a"}, "secrets": [], "imagePullSecrets": []}), step("POST", KINDS["cm"][0], {"metadata": {"name": "a", "labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": []}, "data": {}, "binaryData": {}}), step("POST", crole[0], {"metadata": {"name": "{u}"}, "rules": [], "aggregationRule": {"clusterRoleSelectors": []}}), step("POST", crole[0], {"metadata": {"name": "{u}"}, "rules": []}), step("GET", crole[0] + "/{u}")]


def pages():
    made = [step("POST", CM, {"metadata": {"name": name, "labels": {"x": "y"}}}) for name in "abc"]
    queries = ["limit=1&resourceVersion=0", "limit=1&resourceVersion=0&resourceVersionMatch=NotOlderThan", "limit=1", "limit=1&resourceVersion={rv:1}", "limit=1&resourceVersion={rv:1}&resourceVersionMatch=NotOlderThan", "limit=1&resourceVersion={rv:1}&resourceVersionMatch=Exact", "limit=2&resourceVersion={rv:0}", "resourceVersion={rv:0}", "limit=0&resourceVersion={rv:0}", "limit=1&resourceVersion=0&fieldSelector=metadata.name%3Db"]
    yield "pages", made + [step("GET", CM + "?labelSelector=x%3Dy&" + query) for query in queries]


def reviews():
    group = "/apis/authorization.k8s.io/v1/"
    at = {"resource": "pods", "verb": "get", "namespace": "{ns}"}
    url = {"path": "/x", "verb": "get"}
    specs = [{}, {"user": "u"}, {"resourceAttributes": at}, {"groups": ["g"], "resourceAttributes": at}, {"user": "u", "nonResourceAttributes": url}, {"user": "u", "resourceAttributes": at, "nonResourceAttributes": url}, {"user": "u", "resourceAttributes": {}}, {"user": "u", "resourceAttributes": {"fieldSelector": {}}}, {"user": "u", "resourceAttributes": {"labelSelector": {}}}, {"user": "u", "resourceAttributes": {"fieldSelector": {"rawSelector": "a=b", "requirements": [{"key": "a", "operator": "In", "values": ["b"]}]}}}]
    for name, path in (("whole", "subjectaccessreviews"), ("local", "namespaces/{ns}/localsubjectaccessreviews"), ("self", "selfsubjectaccessreviews")):
        refused = [step("POST", group + path, {"spec": spec}) for spec in specs] + [step("POST", group + path, {"metadata": {"name": "a"}, "spec": {"user": "u", "resourceAttributes": at}}), step("POST", group + path, {"spec": {"user": "u", "resourceAttributes": dict(at, namespace="other")}})]
        # Whether somebody may do something is not what is compared.
        yield "review-" + name, [dict(one, o=["status"]) for one in refused]
    yield "review-others", [step("POST", group + "selfsubjectrulesreviews", {"spec": {}}), step("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {}}), step("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": ""}})]


def metadata():
    """Names of each kind, mistakes in metadata as a change, patches without a revision."""
    bad = {"metadata": {"labels": {"a b": "c"}, "annotations": {"a b": "c"}, "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a"}], "generation": -1}}
    for kind in ("sts", "pdb", "ev1", "pv", "cm", "role", "lr", "csin", "lease", "mwc", "rc"):
        path, body = KINDS[kind]
        at = named(path, body)
        yield "metadata-" + kind, [step("POST", path + "?dryRun=All", changed(body, {"metadata.name": name})) for name in ("A_b", "a..b", "a/b", "-a", "{x*64}", "{x*254}")] + [step("POST", path, body), step("PATCH", at, bad, "merge"), step("PATCH", at + "/status", bad, "merge"), step("PATCH", at, {"metadata": {"finalizers": ["a b", "x.io/y"]}}, "merge"), step("PATCH", at, {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z", "uid": "x"}}, "merge"),
            step("PATCH", at, {"metadata": {"resourceVersion": None}}, "merge"), step("PATCH", at, [{"op": "remove", "path": "/metadata/resourceVersion"}], "json"), step("PATCH", at, {"metadata": {"resourceVersion": None}}, "strategic")]
    yield "metadata-foo", [definition(SCHEMA)] + WAIT + [step("POST", G, foo({})), step("PATCH", G + "/a", bad, "merge"), step("PATCH", G + "/a", {"metadata": {"resourceVersion": None}}, "merge"), step("PATCH", G + "/a", [{"op": "remove", "path": "/metadata/resourceVersion"}], "json")]


def schema_of(schema, **more):
    version = dict({"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}, **more)
    return {"metadata": {"name": "foos.{u}.io"}, "spec": {"group": "{u}.io", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"}, "versions": [version]}}


SCHEMAS = {
    "schema-url": [{"$schema": "x"}, {"$schema": ""}, {"properties": {"a": {"type": "string", "$schema": "x"}}}, {"properties": {"a": {"type": "object", "allOf": [{"$schema": "x"}]}}}, {"$schema": "x", "properties": {"a": {}}}, {"$ref": "x", "properties": {"a": {}}}, {"id": "x", "properties": {"a": {}}}, {"id": ""}, {"properties": {"a": {"type": "array", "items": [{"type": "string"}]}, "b": {}}}],
    "metadata": [{"properties": {"metadata": value}} for value in ({"type": "object"}, {"type": "object", "example": {"a": 1}}, {"type": "object", "externalDocs": {"url": "x"}}, {"type": "object", "description": "x"}, {"type": "object", "title": "", "format": "", "nullable": False}, {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}, {"type": "object", "properties": {"labels": {"type": "object"}}}, {"type": "object", "properties": {}}, {"type": "object", "default": {}}, {"type": "object", "properties": {"name": {"type": "string", "default": "x"}}}, {"type": "object", "maxProperties": 0}, {"type": "string"}, {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, {"type": "object", "x-kubernetes-embedded-resource": True})],
    "header": [{"properties": {"kind": {"type": "string", "default": "Foo"}}}, {"properties": {"apiVersion": {"type": "string", "default": "x"}}}, {"properties": {"kind": {"type": "integer"}}}, {"properties": {"kind": {"type": "string", "enum": ["Foo"]}}}, {"properties": {"spec": {"type": "object", "properties": {"kind": {"type": "string", "default": "x"}}}}},
               {"properties": {"spec": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object", "additionalProperties": {"type": "string", "default": "x"}}}}}}}}, {"properties": {"spec": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"metadata": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}}}}},
               {"properties": {"spec": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"kind": {"type": "string", "default": "x"}, "metadata": {"type": "object", "properties": {"name": {"type": "string", "default": "x"}}}}}}}],
    "number-or-text": [{"properties": {"a": dict({"x-kubernetes-int-or-string": True}, **more)}} for more in ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"anyOf": [{"type": "integer", "uniqueItems": False}, {"type": "string", "format": ""}]}, {"anyOf": [{"type": "integer", "example": 1}, {"type": "string", "externalDocs": {"url": "x"}}]}, {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}, {"allOf": [{"anyOf": [{"type": "integer", "nullable": False}, {"type": "string", "title": ""}]}, {"pattern": "x"}]}, {"type": "string"}, {"type": "integer"}, {"anyOf": [{"type": "integer", "title": "x"}, {"type": "string"}]})],
    "nothing-said": [{"title": "", "description": "", "format": "", "nullable": False, "uniqueItems": False, "exclusiveMaximum": False, "required": [], "enum": [], "x-kubernetes-embedded-resource": False, "x-kubernetes-int-or-string": False, "properties": {"a": {"type": "array", "uniqueItems": False, "items": {"type": "string", "format": "", "enum": [], "nullable": False, "pattern": ""}}, "b": {"type": "object", "additionalProperties": {"type": "string", "format": "", "bogus": 1}}, "c": {"type": "array", "items": {"type": "object", "bogus": 1, "properties": {"d": {"type": "string", "title": "", "default": None, "bogus": 1}}}}, "e": {"type": "object", "properties": {}, "additionalProperties": False}, "f": {"type": "string", "default": None, "example": None}, "g": {"type": "object", "additionalProperties": True}, "h": {"type": "object", "additionalProperties": {}}, "i": {"type": "string", "bogus": 1}}}],
    "others": [{"properties": {"a": {"type": "object", "additionalProperties": {"type": "foo"}}}}, {"properties": {"a": {"type": "array", "items": {"type": "array"}}}}, {"additionalProperties": False}, {"properties": {"a": {"type": "string", "default": 1}, "b": {"$ref": "x"}}}, {"properties": {"a": {"type": "string", "pattern": "["}, "b": {"type": "object", "not": {"pattern": "["}}}}, {"properties": {"a": {"type": "object", "additionalProperties": {"type": "string"}, "properties": {"b": {"type": "string"}}}}}, {"definitions": {"a": {}}}, {"properties": {"a": {"type": "string", "x-kubernetes-map-type": "atomic"}, "b": {"type": "object", "x-kubernetes-list-type": "set"}}}],
}


def schemas():
    path = DEFINITIONS + "?dryRun=All"
    for name, values in SCHEMAS.items():
        yield name, [step("POST", path, schema_of(dict({"type": "object"}, **value))) for value in values]
    one = {"type": "object"}
    spec = lambda **more: changed(schema_of(one), {"spec." + key: value for key, value in more.items()})
    client = {"url": "https://a.b/c"}
    conversions = [{}, {"strategy": ""}, {"strategy": "None"}, {"webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}, {"strategy": "None", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}, {"strategy": "None", "webhook": {"conversionReviewVersions": []}}, {"strategy": "Webhook"}, {"strategy": "Webhook", "webhook": {}}, {"strategy": "X"}] + [{"strategy": "Webhook", "webhook": webhook} for webhook in (
        {"clientConfig": {}, "conversionReviewVersions": ["v1"]}, {"clientConfig": client, "conversionReviewVersions": ["v1", "v1"]}, {"clientConfig": client, "conversionReviewVersions": ["v2"]}, {"clientConfig": client, "conversionReviewVersions": ["A", "v1"]}, {"clientConfig": {"url": "http://a.b"}, "conversionReviewVersions": ["v1beta1"]}, {"clientConfig": {"service": {"name": "a", "namespace": "b", "path": "x", "port": 0}}, "conversionReviewVersions": ["v1"]}, {"clientConfig": {"service": {"name": "a", "namespace": "b"}}, "conversionReviewVersions": ["v1"]}, {"clientConfig": {"url": "https://a.b", "service": {"name": "a", "namespace": "b"}}, "conversionReviewVersions": ["v1"]})]
    yield "conversions", [step("POST", path, spec(conversion=conversion)) for conversion in conversions] + [step("POST", path, schema_of(one))]
    warnings = [dict(deprecationWarning="x"), dict(deprecated=True, deprecationWarning="x"), dict(deprecated=True), dict(deprecated=True, deprecationWarning=""), dict(deprecated=True, deprecationWarning="a\nb"), dict(deprecated=True, deprecationWarning="{x*257}"), dict(deprecationWarning="")]
    yield "deprecations", [step("POST", path, schema_of(one, **more)) for more in warnings]
    scale = lambda **more: dict(subresources={"scale": dict({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}, **more)})
    yield "scales", [step("POST", path, schema_of(one, **scale(**more))) for more in [{"labelSelectorPath": place} for place in ("", "x", ".x", ".spec.x", ".status.x", ".status", ".")] + [{"specReplicasPath": ".spec"}, {"specReplicasPath": ".status.x"}, {"statusReplicasPath": ".spec.x"}]]
    two = lambda first, second: changed(schema_of(one), {"spec.versions": [dict({"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": one}}, **first), dict({"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": {"type": "object", "description": "x"}}}, **second)]})
    yield "two-versions", [step("POST", path, two(first, second)) for first, second in (({}, {}), ({}, {"deprecationWarning": "x"}), ({"deprecationWarning": "x", "deprecated": True}, {}), ({}, {"schema": {"openAPIV3Schema": {"type": "object", "$schema": "x"}}}), ({}, scale(labelSelectorPath="x")), ({}, {"schema": {"openAPIV3Schema": one}}), (STATUS, STATUS), ({}, {"subresources": {}}))]
    changes = [{"spec": {"scope": "Cluster"}}, {"spec": {"names": {"kind": "Bar"}}}, {"spec": {"names": {"plural": "bars"}}}, {"spec": {"group": "x.io"}}, {"spec": {"conversion": None}}, {"spec": {"conversion": {"strategy": None}}}, {"spec": {"names": {"listKind": "Foes", "singular": "foe"}}}]
    yield "changes", [definition(SCHEMA)] + WAIT + [step("PATCH", DEFINITIONS + "/foos.{u}.io?dryRun=All", change, "merge") for change in changes]


def scripts():
    for family in (made_by_change, nameless, finalizers, strict, statuses, empties, pages, reviews, metadata, schemas):
        yield from family()
