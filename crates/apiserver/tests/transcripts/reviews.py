"""Scripts about reviews: what webhooks and policies of admission are shown of each way to write. `Hook` is the webhook that notes it."""
import base64, http.server, json, os, ssl, subprocess, tempfile, threading

from expressions import BINDINGS, POLICIES, binding, policy
from scripts import BASE, CM, G, M, changed, step

ALL = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"], "scope": "*"}
PODS, DEPLOYMENTS, ACCOUNTS = "/api/v1/namespaces/{ns}/pods", "/apis/apps/v1/namespaces/{ns}/deployments", "/api/v1/namespaces/{ns}/serviceaccounts"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/%swebhookconfigurations"
SETTLED = dict(step("WAIT", "/api/v1/namespaces/{ns}"), z=4)


def configuration(name, webhook, rules=ALL, **more):
    """A webhook that is reached at the path `webhook`; {hook} and {ca} are filled in by who plays the script."""
    return {"metadata": {"name": name}, "webhooks": [dict({"name": webhook + ".x.io", "clientConfig": {"url": "{hook}/" + webhook, "caBundle": "{ca}"}, "rules": [rules],
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 20}, **more)]}


def patched(one, *operations):
    """A step in which mutating webhooks patch what they are shown."""
    return dict(one, j=list(operations))


def denied(one, message="not today"):
    """A step in which validating webhooks refuse."""
    return dict(one, d=message)


def put(path, value):
    return {"op": "add", "path": path, "value": value}


def scripts():
    cm = lambda name="a", **more: dict({"metadata": {"name": name}, "data": {"a": "1"}}, **more)
    a, label = CM + "/a", put("/metadata/labels", {"l": "1"})
    apply = lambda data, **more: dict({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}, **more)
    yield "create", [step("POST", CM, cm()), step("POST", CM, cm()), step("POST", CM + "?dryRun=All&fieldManager=me&fieldValidation=Strict", cm("b")), step("POST", CM, cm("A_")), step("POST", CM, {"metadata": {"generateName": "g-"}}),
                     step("POST", CM, {}), step("POST", CM, cm("c", kind="Odd")), step("POST", "/api/v1/namespaces/{u}/configmaps", cm("d"))]
    yield "create-mutated", [patched(step("POST", CM, cm()), label, put("/data/b", "2")), patched(step("POST", CM + "?dryRun=All", cm("b")), label), patched(step("POST", CM, {"metadata": {"generateName": "g-"}}), put("/metadata/name", "named")),
                             patched(step("POST", CM, cm("c")), put("/metadata/name", "A_")), patched(step("POST", CM, cm("c")), put("/odd", "x")), patched(step("POST", CM, cm("e")), put("/data/x", 5)),
                             patched(step("POST", CM, cm("f")), {"op": "remove", "path": "/metadata/managedFields"}), patched(step("POST", CM, cm("d")), {"op": "test", "path": "/data/a", "value": "2"})]
    yield "create-denied", [denied(step("POST", CM, cm())), step("GET", a), denied(step("POST", CM + "?dryRun=All", cm()), "")]
    yield "update", [step("POST", CM, cm()), step("PUT", a, cm(data={"a": "2"})), step("PUT", a, cm(data={"a": "2"})), step("PUT", a, cm(metadata={"name": "a", "resourceVersion": "1"})), step("PUT", CM + "/none", cm("none")),
                     step("PUT", a + "?dryRun=All", cm(data={"a": "3"})), step("PUT", a, cm(metadata={"name": "a", "labels": {"a b": "c"}})), step("PUT", a, cm(metadata={"name": "a", "finalizers": ["x.io/y"]})),
                     step("DELETE", a), step("PUT", a, cm(data={"b": "2"}, metadata={"name": "a", "finalizers": ["x.io/y"]})), step("DELETE", a), step("PUT", a, cm())]
    yield "update-mutated", [step("POST", CM, cm()), patched(step("PUT", a, cm(data={"a": "2"})), label), patched(step("PUT", a, cm(data={"a": "2"}, metadata={"name": "a", "labels": {"l": "1"}})), put("/data/c", "3")),
                             patched(step("PATCH", a, {"data": {"d": "4"}}, "merge"), put("/data/e", "5")), denied(step("PATCH", a, {"data": {"d": "5"}}, "merge")), step("GET", a)]
    yield "patch", [step("POST", CM, cm()), step("PATCH", a, [put("/data/b", "2")], "json"), step("PATCH", a, {"data": {"c": "3"}}, "merge"), step("PATCH", a, {"data": {"d": "4"}}, "strategic"), step("PATCH", a, {}, "merge"),
                    step("PATCH", CM + "/none", {}, "merge"), step("PATCH", a + "?dryRun=All&fieldManager=me", {"data": {"e": "5"}}, "merge"), step("PATCH", a, [{"op": "test", "path": "/data/a", "value": "9"}], "json"),
                    step("PATCH", a, {"metadata": {"resourceVersion": "1"}}, "merge")]
    yield "apply", [step("PATCH", a + "?fieldManager=one", apply({"a": "1"}), "apply"), step("PATCH", a + "?fieldManager=one", apply({"a": "2", "b": "2"}), "apply"), step("PATCH", a + "?fieldManager=two", apply({"a": "3"}), "apply"),
                    step("PATCH", a + "?fieldManager=two&force=true", apply({"a": "3"}), "apply"), step("PATCH", a + "?fieldManager=two&force=true&dryRun=All", apply({"a": "4"}), "apply"), step("PATCH", a + "?fieldManager=one", apply({"b": "2"}), "apply")]
    yield "apply-mutated", [patched(step("PATCH", a + "?fieldManager=one", apply({"a": "1"}), "apply"), put("/data/m", "1")), patched(step("PATCH", a + "?fieldManager=one", apply({"a": "2"}), "apply"), put("/data/n", "2")),
                            step("PATCH", a + "?fieldManager=two", apply({"n": "3"}), "apply")]
    yield "delete", [step("POST", CM, cm()), step("DELETE", a + "?dryRun=All"), step("DELETE", a, {"preconditions": {"uid": "x"}}), step("DELETE", a, {"propagationPolicy": "Background", "gracePeriodSeconds": 5}), step("DELETE", a),
                     step("POST", CM, cm("b")), denied(step("DELETE", CM + "/b")), step("GET", CM + "/b"), step("DELETE", CM + "/b?propagationPolicy=Background"), step("DELETE", CM + "/none"), step("DELETE", CM + "/A_")]
    yield "delete-many", [step("POST", CM, cm(metadata={"name": "a", "labels": {"x": "1"}})), step("POST", CM, cm(metadata={"name": "b", "labels": {"x": "1"}})), step("DELETE", CM + "?labelSelector=x=1&dryRun=All"), denied(step("DELETE", CM + "?labelSelector=x=1")),
                          step("DELETE", CM + "?labelSelector=x=1", {"gracePeriodSeconds": 3}), step("DELETE", CM + "?labelSelector=x=1"), step("GET", CM + "?labelSelector=x=1")]
    spaces, space = "/api/v1/namespaces", "/api/v1/namespaces/{u}"
    held = {"metadata": {"name": "{u}"}, "spec": {"finalizers": ["kubernetes", "x.io/y"]}}
    yield "namespaces", [step("POST", spaces, {"metadata": {"name": "{u}"}}), step("PATCH", space, {"metadata": {"labels": {"a": "b"}}}, "merge"), step("PUT", space + "/status", {"metadata": {"name": "{u}"}, "status": {"phase": "Active"}}), step("DELETE", space + "?dryRun=All"),
                         patched(step("PUT", space + "/finalize", held), put("/metadata/labels/f", "1")), denied(step("PUT", space + "/finalize", held)), dict(step("POST", spaces, {"metadata": {"generateName": "{u}-"}}), o=["metadata"]), denied(step("DELETE", space)), step("DELETE", space), step("POST", "/api/v1/namespaces/{u}/configmaps", cm()), step("POST", "/api/v1/namespaces/{u}/configmaps", {"metadata": {"generateName": "g-"}})]
    for kind, plural, group in (("dep", "deployments", "apps/v1"), ("rs", "replicasets", "apps/v1"), ("sts", "statefulsets", "apps/v1"), ("rc", "replicationcontrollers", "")):
        path, base = BASE[kind]
        one = path + "/" + base["metadata"]["name"]
        scale = one + "/scale"
        change = lambda number, **more: {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": dict({"name": base["metadata"]["name"]}, **more), "spec": {"replicas": number}}
        steps = [step("POST", path, base), step("GET", scale), step("PUT", scale, change(2)), step("PATCH", scale + "?fieldManager=me", {"spec": {"replicas": 3}}, "merge"), step("PATCH", one, {"spec": {"replicas": 4}}, "merge"), step("GET", one)]
        if kind == "dep":
            steps += [step("PATCH", scale, [{"op": "replace", "path": "/spec/replicas", "value": 5}], "json"), step("PUT", scale + "?dryRun=All", change(6)), step("PUT", scale, change(-1)), step("PUT", scale, change(1, resourceVersion="1")),
                      step("PUT", path + "/none/scale", dict(change(1), metadata={"name": "none"})), step("PATCH", scale + "?fieldManager=app&force=true", change(7), "apply"),
                      patched(step("PUT", scale, change(8)), {"op": "replace", "path": "/spec/replicas", "value": 9}), step("GET", one), patched(step("PATCH", scale, {"spec": {"replicas": 1}}, "merge"), {"op": "replace", "path": "/spec/replicas", "value": -1}),
                      patched(step("PUT", scale, change(8)), put("/metadata/labels", {"a": "b"})), denied(step("PUT", scale, change(1))), step("GET", scale), step("PUT", scale, change(8)), step("PATCH", scale, {"spec": {"replicas": 0}}, "merge")]
        yield "scale-" + kind, steps
    bare, d = changed(BASE["dep"][1], {}), DEPLOYMENTS + "/" + BASE["dep"][1]["metadata"]["name"]
    bare["spec"].pop("replicas", None)
    yield "scale-of-defaults", [step("PATCH", d + "?fieldManager=app", dict(bare, kind="Deployment", apiVersion="apps/v1"), "apply"), step("PUT", d + "/scale?fieldManager=hpa", {"metadata": {"name": bare["metadata"]["name"]}, "spec": {"replicas": 2}}),
                               step("PUT", d + "/scale?fieldManager=hpa", {"metadata": {"name": bare["metadata"]["name"]}, "spec": {"replicas": 3}}), step("GET", d)]
    yield "deployments", [step("POST", DEPLOYMENTS, BASE["dep"][1]), step("PATCH", d + "/status", {"status": {"replicas": 1, "observedGeneration": 1}}, "merge"), step("PATCH", d, {"spec": {"paused": True}, "status": {"replicas": 7}}, "merge"),
                         patched(step("PATCH", d + "/status", {"status": {"replicas": 2}}, "merge"), put("/status/readyReplicas", 1), put("/spec/replicas", 5)), step("DELETE", d + "?propagationPolicy=Orphan")]
    pod = lambda name="p", **spec: {"metadata": {"name": name}, "spec": dict({"containers": [{"name": "c", "image": "i"}]}, **spec)}
    p = PODS + "/p"
    bind = lambda **more: dict({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}, **more)
    yield "pods", [step("POST", PODS, pod()), step("PATCH", p, {"metadata": {"labels": {"a": "b"}}}, "merge"), step("PATCH", p + "/status", {"status": {"phase": "Running", "podIP": "1.2.3.4"}}, "merge"), step("DELETE", p, {"gracePeriodSeconds": 0})]
    yield "pods-mutated", [patched(step("POST", PODS, pod()), put("/metadata/labels", {"l": "1"}), put("/spec/containers/-", {"name": "side", "image": "j"})), patched(step("POST", PODS, pod("q")), put("/spec/tolerations", [])),
                          patched(step("POST", PODS, pod("r")), put("/spec/priority", 7)), patched(step("PATCH", p, {"metadata": {"annotations": {"a": "b"}}}, "merge"), put("/spec/containers/0/image", "z"))]
    yield "binding", [step("POST", PODS, pod()), denied(step("POST", p + "/binding", bind())), step("POST", p + "/binding?dryRun=All", bind()), patched(step("POST", p + "/binding?fieldManager=me", bind()), put("/target/name", "n2"), put("/metadata/annotations", {"a": "b"})),
                      step("GET", p), step("POST", p + "/binding", bind()), step("POST", PODS + "/none/binding", bind(metadata={"name": "none"})), step("POST", p + "/binding", bind(metadata={"name": "other"})), step("DELETE", p), step("DELETE", p, {"gracePeriodSeconds": 0})]
    bindings = "/api/v1/namespaces/{ns}/bindings"
    yield "bindings", [step("POST", PODS, pod()), denied(step("POST", bindings, bind())), step("POST", bindings + "?dryRun=All", bind()), patched(step("POST", bindings, bind()), put("/target/name", "n2")), step("GET", p), step("POST", bindings, bind(metadata={}))]
    evict = lambda **more: dict({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}, **more)
    e = p + "/eviction"
    yield "eviction", [step("POST", PODS, pod()), denied(step("POST", e, evict())), step("GET", p), step("POST", e + "?dryRun=All", evict()), step("POST", e, evict(deleteOptions={"dryRun": ["All"], "gracePeriodSeconds": 7})),
                       patched(step("POST", e, evict()), put("/deleteOptions", {"dryRun": ["All"]})), step("GET", p), step("POST", e + "?fieldManager=me", evict(deleteOptions={"gracePeriodSeconds": 0})), step("GET", p), step("POST", e, evict()), step("POST", e, evict(metadata={"name": "q"}))]
    yield "eviction-of-bound", [step("POST", PODS, pod(nodeName="n1")), step("POST", e, evict()), step("GET", p), step("POST", e, evict()), step("DELETE", p, {"gracePeriodSeconds": 0})]
    more = lambda name: {"spec": {"ephemeralContainers": [{"name": name, "image": "i"}]}}
    yield "ephemeral-containers", [step("POST", PODS, pod()), step("PATCH", p + "/ephemeralcontainers", more("x"), "strategic"), patched(step("PATCH", p + "/ephemeralcontainers", more("y"), "strategic"), put("/spec/ephemeralContainers/0/image", "k")), step("GET", p),
                                   denied(step("PATCH", p + "/ephemeralcontainers", more("z"), "strategic"))]
    sized = lambda cpu: {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": "1"}}}]}}
    yield "resize", [step("POST", PODS, pod(containers=[{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}}])), step("PATCH", p + "/resize", sized("200m"), "strategic"),
                     patched(step("PATCH", p + "/resize", sized("300m"), "strategic"), put("/spec/containers/0/resources/requests/cpu", "400m")), step("GET", p)]
    yield "connect", [step("POST", PODS, pod()), step("POST", p + "/exec?command=ls&command=-l&stdin=true&container=c"), step("GET", p + "/exec?command=ls"), step("POST", p + "/attach?tty=true&stdout=true"), step("POST", p + "/portforward?ports=80&ports=81"),
                      step("POST", PODS + "/none/exec?command=ls"), denied(step("POST", p + "/exec?command=ls"), "no shells"), step("GET", p + "/log"), step("GET", p + "/proxy/x/y"), denied(step("GET", p + "/proxy/x/y?a=b"), "no proxies"), denied(step("POST", p + "/attach"), "no"), denied(step("POST", p + "/portforward"), "no")]
    ask = lambda **more: dict({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["x"]}}, **more)
    t = ACCOUNTS + "/s/token"
    no_token = lambda one: dict(one, o=["status"])
    yield "token", [step("POST", ACCOUNTS, {"metadata": {"name": "s"}}), denied(step("POST", t, ask())), no_token(step("POST", t + "?fieldManager=me", ask())), no_token(step("POST", t + "?dryRun=All", ask())), no_token(step("POST", t, {})),
                    no_token(patched(step("POST", t, ask()), put("/spec/expirationSeconds", 7200), put("/spec/audiences", ["y"]))), patched(step("POST", t, ask()), put("/spec/expirationSeconds", 5)), step("POST", ACCOUNTS + "/none/token", ask()),
                    step("POST", t, ask(spec={"expirationSeconds": 5})), no_token(step("POST", t, ask(metadata={"name": "s", "namespace": "{ns}", "labels": {"a": "b"}})))]
    bound = lambda **ref: ask(spec={"audiences": ["x"], "boundObjectRef": dict({"kind": "Pod", "apiVersion": "v1", "name": "p"}, **ref)})
    yield "token-bound", [step("POST", ACCOUNTS, {"metadata": {"name": "s"}}), step("POST", t, bound()), step("POST", PODS, pod(serviceAccountName="other")), step("POST", t, bound()), step("POST", PODS, pod("q", serviceAccountName="s")), no_token(step("POST", t, bound(name="q"))),
                          step("POST", t, bound(name="q", uid="wrong")), step("POST", t, bound(kind="Secret")), step("POST", "/api/v1/namespaces/{ns}/secrets", {"metadata": {"name": "p"}}), no_token(step("POST", t, bound(kind="Secret"))), step("POST", t, bound(kind="ConfigMap")),
                          step("POST", t, bound(kind="Node", name="none")), step("POST", t, bound(apiVersion="v2")), step("POST", t, bound(name="")), step("POST", t, bound(kind=""))]
    requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    csr = {"metadata": {"name": "{u}"}, "spec": {"signerName": "x.io/y", "usages": ["client auth"], "request": base64.b64encode(REQUEST.encode()).decode()}}
    decided = lambda **status: dict(csr, status=status)
    condition = {"type": "Approved", "status": "True", "reason": "R", "message": "m"}
    yield "signing", [step("POST", requests, csr), denied(step("PUT", requests + "/{u}/approval", decided(conditions=[condition]))), step("PUT", requests + "/{u}/approval", decided(conditions=[condition])), step("PATCH", requests + "/{u}/status", {"metadata": {"labels": {"a": "b"}}}, "merge"),
                      step("DELETE", requests + "/{u}")]
    group = {"group": "{u}.io", "names": {"plural": "foos", "kind": "Foo", "singular": "foo"}, "scope": "Namespaced"}
    version = lambda name, stored: {"name": name, "served": True, "storage": stored, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"spec": {"type": "object", "properties": {"replicas": {"type": "integer"}, "a": {"type": "string", "default": "x"}}}, "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}}}}},
                                    "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}}
    definition = [step("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {"metadata": {"name": "foos.{u}.io"}, "spec": dict(group, versions=[version("v1", True), version("v2", False)])}), dict(step("WAIT", "/apis/{u}.io/v2/namespaces/{ns}/foos"), z=1)]
    foos, f = "/apis/{u}.io/v1/namespaces/{ns}/foos", "/apis/{u}.io/v1/namespaces/{ns}/foos/f"
    foo = lambda number=1, **more: dict({"apiVersion": "{u}.io/" + number_of(more), "kind": "Foo", "metadata": {"name": "f"}, "spec": {"replicas": number}}, **more)
    number_of = lambda more: more.pop("v", "v1")
    other = lambda path: path.replace("/v1/", "/v2/")
    scaled = lambda number: {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "f"}, "spec": {"replicas": number}}
    yield "custom", definition + [step("POST", foos, foo()), step("PUT", other(f), foo(2, v="v2")), step("PUT", other(f), foo(2, v="v2", metadata={"name": "f", "resourceVersion": "{rv:2}"})), step("PATCH", other(f), {"spec": {"a": "y"}}, "merge"), step("PATCH", f + "/status", {"status": {"replicas": 1}}, "merge"), step("PUT", f + "/scale", scaled(3)), step("PATCH", other(f) + "/scale", {"spec": {"replicas": 4}}, "merge"),
                                  patched(step("PUT", f + "/scale", scaled(5)), {"op": "replace", "path": "/spec/replicas", "value": 6}), step("GET", f), step("PATCH", f + "?fieldManager=app&force=true", foo(7), "apply"), patched(step("PATCH", f, {"spec": {"b": "1"}}, "merge"), put("/spec/a", "m")),
                                  denied(step("PUT", f + "/scale", scaled(1))), step("DELETE", f), step("POST", foos, {"apiVersion": "{u}.io/v1", "kind": "Foo", "metadata": {"generateName": "g-"}}), step("DELETE", foos), step("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.{u}.io")]
    own = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "{ns}"}}}
    named = lambda version, part="*": {"apiGroups": ["{u}.io"], "apiVersions": [version], "resources": ["foos/" + part], "operations": ["*"]}
    more = [step("POST", CONFIGURATIONS % "validating", configuration("{u}-e", "validating-two", named("v2"), **own)), step("POST", CONFIGURATIONS % "validating", configuration("{u}-x", "validating-exact", named("v2"), matchPolicy="Exact", **own)),
            step("POST", CONFIGURATIONS % "mutating", configuration("{u}-m", "mutating-two", named("v2"), **own)), SETTLED]
    yield "equivalent-custom", definition + more + [step("POST", foos, foo()), step("PUT", other(f), foo(2, v="v2", metadata={"name": "f", "resourceVersion": "{rv:6}"})), patched(step("PATCH", f, {"spec": {"replicas": 3}}, "merge"), put("/spec/b", "2")), step("PATCH", f + "/status", {"status": {"replicas": 1}}, "merge"),
                                                    step("PUT", f + "/scale", scaled(3)), step("DELETE", f)]
    scalers, autoscalers = BASE["hpa"][0], BASE["hpa1"][0]
    rule = lambda group, version, resource: {"apiGroups": [group], "apiVersions": [version], "resources": [resource], "operations": ["*"]}
    h = "/" + BASE["hpa1"][1]["metadata"]["name"]
    yield "equivalent-autoscalers", [step("POST", CONFIGURATIONS % "validating", configuration("{u}-e", "validating-two", rule("autoscaling", "v2", "horizontalpodautoscalers"), **own)), step("POST", CONFIGURATIONS % "validating", configuration("{u}-o", "validating-one", rule("autoscaling", "v1", "horizontalpodautoscalers"), **own)),
                                     step("POST", CONFIGURATIONS % "validating", configuration("{u}-x", "validating-exact", rule("autoscaling", "v2", "horizontalpodautoscalers"), matchPolicy="Exact", **own)),
                                     step("POST", CONFIGURATIONS % "mutating", configuration("{u}-m", "mutating-two", rule("autoscaling", "v2", "horizontalpodautoscalers"), **own)), SETTLED,
                                     step("POST", autoscalers, BASE["hpa1"][1]), step("PATCH", scalers + h, {"spec": {"maxReplicas": 9}}, "merge"), patched(step("PATCH", autoscalers + h, {"spec": {"maxReplicas": 8}}, "merge"), put("/metadata/labels", {"l": "1"})), step("DELETE", autoscalers + h)]
    events, newer = BASE["ev"][0], BASE["ev1"][0]
    yield "equivalent-events", [step("POST", CONFIGURATIONS % "validating", configuration("{u}-e", "validating-new", rule("events.k8s.io", "v1", "events"), **own)), step("POST", CONFIGURATIONS % "validating", configuration("{u}-o", "validating-core", rule("", "v1", "events"), **own)), SETTLED,
                                step("POST", events, BASE["ev"][1]), step("POST", newer, dict(BASE["ev1"][1], metadata={"name": "later"})), step("DELETE", newer + "/later")]
    only = lambda name, part: configuration("{u}-" + name, "validating-" + name, {"apiGroups": ["*"], "apiVersions": ["*"], "resources": [part], "operations": ["*"]}, **own)
    yield "rules", [step("POST", CONFIGURATIONS % "validating", only(name, part)) for name, part in (("evict", "pods/eviction"), ("scale", "*/scale"), ("pods", "pods"), ("part", "pods/*"), ("tokens", "serviceaccounts/token"), ("odd", "evictions"))] + [
        step("POST", CONFIGURATIONS % "validating", configuration("{u}-labels", "validating-labels", ALL, objectSelector={"matchLabels": {"pick": "me"}}, **own)),
        step("POST", CONFIGURATIONS % "validating", configuration("{u}-group", "validating-policy", {"apiGroups": ["policy"], "apiVersions": ["v1"], "resources": ["pods/eviction"], "operations": ["*"]}, **own)),
        step("POST", CONFIGURATIONS % "validating", configuration("{u}-scales", "validating-auto", {"apiGroups": ["autoscaling"], "apiVersions": ["v1"], "resources": ["deployments/scale"], "operations": ["*"]}, **own)), SETTLED,
        step("POST", PODS, dict(pod(), metadata={"name": "p", "labels": {"pick": "me"}})), step("POST", e, evict(metadata={"name": "p", "labels": {"pick": "me"}}, deleteOptions={"dryRun": ["All"]})), step("POST", e, evict()), step("POST", DEPLOYMENTS, dict(BASE["dep"][1], metadata={"name": "d", "labels": {"pick": "me"}})),
        step("PUT", DEPLOYMENTS + "/d/scale", {"metadata": {"name": "d"}, "spec": {"replicas": 2}})]
    yield "reviews", [step("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}), step("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {"user": "admin", "groups": ["system:masters"], "resourceAttributes": {"verb": "get", "resource": "pods"}}}),
                      step("POST", "/apis/authorization.k8s.io/v1/namespaces/{ns}/localsubjectaccessreviews", {"metadata": {"namespace": "{ns}"}, "spec": {"user": "admin", "groups": ["system:masters"], "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "{ns}"}}}),
                      step("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}), step("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}), step("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews?dryRun=All", {"spec": {"namespace": "{ns}"}}),
                      denied(step("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}))]
    for kind in ("svc", "pvc", "pv", "node", "job", "ds", "cj", "ing", "sec", "sa", "crole", "rb", "lease", "pdb", "rq", "eps", "sc", "np", "ev", "ev1", "hpa", "hpa1", "pc", "csid", "ep"):
        path, base = BASE[kind]
        one = path + "/" + base["metadata"]["name"]
        yield "kind-" + kind, [step("POST", path, base), step("PATCH", one, {"metadata": {"labels": {"a": "b"}}}, "merge"), step("DELETE", one)]
    lease = BASE["lease"][0]
    yield "created-by-update", [step("PUT", lease + "/l?fieldManager=me", {"metadata": {"name": "l"}, "spec": {}}), step("PUT", lease + "/l", {"metadata": {"name": "l", "resourceVersion": "{rv:0}"}, "spec": {"holderIdentity": "x"}}), patched(step("PUT", lease + "/m?dryRun=All", {"metadata": {"name": "m"}, "spec": {}}), put("/metadata/labels", {"l": "1"}))]
    yield "configurations", [step("POST", CONFIGURATIONS % "validating", {"metadata": {"name": "{u}"}, "webhooks": []}), step("DELETE", CONFIGURATIONS % "validating" + "/{u}"), dict(policy({"expression": "true"})), step("DELETE", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{u}")]
    said = "request.kind.group + '/' + request.kind.version + '/' + request.kind.kind + ' ' + request.operation + ' ' + request.resource.resource + '/' + (has(request.subResource) ? request.subResource : '') + ' ' + (has(request.name) ? request.name : '') + ' of ' + (has(request.options) && request.options != null && has(request.options.kind) ? request.options.kind : 'nothing')"
    shown = " + ' shows ' + (object == null ? 'nothing' : (has(object.kind) ? object.kind : 'no kind') + (has(object.spec) && has(object.spec.replicas) ? ' ' + string(object.spec.replicas) : '')) + ' was ' + (oldObject == null ? 'nothing' : (has(oldObject.kind) ? oldObject.kind : 'no kind') + (has(oldObject.spec) && has(oldObject.spec.replicas) ? ' ' + string(oldObject.spec.replicas) : ''))"
    everything = {"resourceRules": [ALL], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "{ns}"}}}
    gone = [step("DELETE", path + "/{u}") for path in (BINDINGS, POLICIES)]
    yield "policy", [policy({"expression": "false", "messageExpression": said + shown}, constraints=everything), binding("Warn"), SETTLED, step("POST", DEPLOYMENTS, dict(BASE["dep"][1], metadata={"name": "d"})), step("PUT", DEPLOYMENTS + "/d/scale", {"metadata": {"name": "d"}, "spec": {"replicas": 2}}), step("PATCH", DEPLOYMENTS + "/d/scale", {"spec": {"replicas": 3}}, "merge"),
                     step("POST", PODS, pod()), step("POST", p + "/exec?command=ls"), step("POST", p + "/binding", bind()), step("POST", e, evict(deleteOptions={"dryRun": ["All"]})), step("POST", ACCOUNTS, {"metadata": {"name": "s"}}), no_token(step("POST", t, ask())),
                     step("PATCH", p + "/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "x", "image": "i"}]}}, "strategic"), step("POST", "/apis/authorization.k8s.io/v1/namespaces/{ns}/localsubjectaccessreviews", {"metadata": {"namespace": "{ns}"}, "spec": {"user": "admin", "groups": ["system:masters"], "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "{ns}"}}}),
                     step("DELETE", CM, {}), step("DELETE", p, {"gracePeriodSeconds": 0})] + gone
    yield "policy-denies", [policy({"expression": "!has(request.subResource) || request.subResource != 'eviction' && (request.subResource != 'scale' || object.spec.replicas < 3) && request.subResource != 'exec'", "message": "no"}, constraints=everything), binding("Deny"), SETTLED, step("POST", PODS, pod()), step("POST", e, evict()), step("GET", p), step("POST", p + "/exec?command=ls"),
                            step("POST", DEPLOYMENTS, dict(BASE["dep"][1], metadata={"name": "d"})), step("PUT", DEPLOYMENTS + "/d/scale", {"metadata": {"name": "d"}, "spec": {"replicas": 2}}), step("PUT", DEPLOYMENTS + "/d/scale", {"metadata": {"name": "d"}, "spec": {"replicas": 3}}), step("GET", DEPLOYMENTS + "/d/scale")] + gone


REQUEST = """-----BEGIN CERTIFICATE REQUEST-----
MIHHMG4CAQAwDDEKMAgGA1UEAwwBeDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IA
BODQZznPobmUW3NTjMqmxQXjwZ67kJF0SIfPf72ZAUvM/moiea5yi+516Pj+20AE
0zoH1XOnY0j34CLD0hzJdfigADAKBggqhkjOPQQDAgNJADBGAiEA82yMA8uxPRgb
gdwFwjnvLIZuEV4/Vri0Ad56eAn5towCIQCK6WAyywh1hbD8NGIhLEy/yyA5OTZ6
daG1Peo/eYqDgw==
-----END CERTIFICATE REQUEST-----
"""


class Hook:
    """A webhook that allows everything, and notes what it is asked."""

    def __init__(self):
        self.notes, self.step, self.lock = [], {}, threading.Lock()
        directory = tempfile.mkdtemp()
        key, certificate = os.path.join(directory, "key"), os.path.join(directory, "certificate")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=hook", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        self.authority = base64.b64encode(open(certificate, "rb").read()).decode()
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.dumps(hook.answer(self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = "https://127.0.0.1:%d" % server.server_address[1]

    def answer(self, path, review):
        name, request = path.split("?")[0].strip("/"), review["request"]
        answer = {"uid": request["uid"], "allowed": True}
        # What the server does by itself is reviewed as well.
        if request["userInfo"]["username"] == "admin":
            with self.lock:
                self.notes.append((name, request))
            if "j" in self.step and name.startswith("mutating"):
                answer.update(patchType="JSONPatch", patch=base64.b64encode(json.dumps(self.step["j"]).encode()).decode())
            if "d" in self.step and name.startswith("validating"):
                answer.update(allowed=False, status={"message": self.step["d"], "code": 403})
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}

    def take(self):
        """Returns what was noted, by webhook, and forgets it."""
        with self.lock:
            notes, self.notes = self.notes, []
        shown = []
        for name, request in sorted(notes, key=lambda note: note[0]):
            metadata = (request.get("object") or request.get("oldObject") or {}).get("metadata", {})
            prefix, made = metadata.get("generateName"), metadata.get("name")
            if prefix and made and made.startswith(prefix):
                request = json.loads(json.dumps(request).replace(made, prefix + "*"))
            shown.append(dict(request, webhook=name, uid="", userInfo=sorted(request["userInfo"])))
        return shown

    def configurations(self):
        """Returns the paths and bodies of the configurations that every script needs."""
        for kind in ("mutating", "validating"):
            yield CONFIGURATIONS % kind, self.fill(json.dumps(configuration("all-" + kind, kind)))

    def fill(self, text):
        return text.replace("{hook}", self.url).replace("{ca}", self.authority)
