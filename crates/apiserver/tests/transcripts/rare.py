"""Random objects of kinds that are made once and seldom change: most of them are wrong somewhere.

A sequence makes an object and changes it. The same seed makes the same sequence, for recordings and for two servers at once.
"""
import copy, json, random

CLUSTER, NAMESPACED = "{u}", "a"
MERGE, STRATEGIC = "merge", "strategic"
LONG = "x" * 64


def some(rng, right, wrong, share=0.25):
    """Fields of `right`, each with its first value; some of them have another, that of `wrong` included, or are left out."""
    out = {}
    for name, values in right.items():
        value = values[0]
        if rng.random() < share:
            value = rng.choice(values[1:] + wrong.get(name, []) + [None])
        if value is not None:
            out[name] = copy.deepcopy(value)
    for name, values in wrong.items():
        if name not in right and rng.random() < share / 2:
            out[name] = copy.deepcopy(rng.choice(values))
    return out


def listed(rng, make, most=2, least=1):
    return [make(rng) for _ in range(rng.randint(least, most))]


NAMES = ["a", "b"]
BAD_NAMES = ["", "A_", "a b", LONG, "a.b", "-", "a/b"]


def api_service(rng):
    group = "{u}.io"
    service = some(rng, {"name": ["s"], "namespace": ["n"], "port": [443]}, {"name": [""], "namespace": [""], "port": [0, 70000, -1]})
    spec = some(rng, {"group": [group], "version": ["v1"], "groupPriorityMinimum": [100, 20000], "versionPriority": [5, 1000], "service": [service, {}]},
                {"group": ["", "A_", "e.io"], "version": ["v2", "", "V", "1"], "groupPriorityMinimum": [0, 20001, -1], "versionPriority": [0, 1001, -5], "insecureSkipTLSVerify": [True, False], "caBundle": ["YQ==", "", "YWJj"]}, 0.15)
    return {"metadata": {"name": rng.choice(["v1." + group] * 8 + ["v2." + group, "x.y"])}, "spec": spec}


def subject(rng):
    kinds = {"User": ("user", {"name": rng.choice(["u", "u", ""])}), "Group": ("group", {"name": rng.choice(["g", "g", ""])}),
             "ServiceAccount": ("serviceAccount", some(rng, {"name": ["s", "*"], "namespace": ["n"]}, {"name": ["", "A_"], "namespace": ["", "a.b", "A"]}))}
    kind = rng.choice(sorted(kinds))
    out = {"kind": kind if rng.random() < 0.95 else "X"}
    for other, (field, value) in kinds.items():
        if rng.random() < (0.93 if other == kind else 0.07):
            out[field] = value
    return out


VERBS = [["get"], ["*"], ["list", "watch"], ["create", "update", "patch", "delete", "deletecollection", "proxy"]]
BAD_VERBS = [[], ["*", "get"], ["GET"], ["get", "x"], [""]]


def flow_rule(rng):
    resource = lambda rng: some(rng, {"verbs": VERBS, "apiGroups": [["zz.io"], ["*"], [""]], "resources": [["zz"], ["*"], ["a/b"]], "namespaces": [["n"], ["*"], ["n", "m"]]},
                                {"verbs": BAD_VERBS, "apiGroups": [[], ["*", "x"]], "resources": [[], ["*", "x"]], "namespaces": [[], ["*", "x"], ["A"], ["a.b", "n"]], "clusterScope": [True, False]})
    url = lambda rng: some(rng, {"verbs": VERBS, "nonResourceURLs": [["/zz"], ["*"], ["/"], ["/a/*"]]}, {"verbs": BAD_VERBS, "nonResourceURLs": [[], ["*", "/x"], ["x"], [""], ["/a b"], ["/a//b"], ["/a*"], ["/*/*"], ["/*/a"]]})
    out = {}
    if rng.random() < 0.95:
        out["subjects"] = listed(rng, subject, 2, 0 if rng.random() < 0.1 else 1)
    if rng.random() < 0.8:
        out["resourceRules"] = listed(rng, resource)
    if rng.random() < 0.4:
        out["nonResourceRules"] = listed(rng, url)
    return out


def flow_schema(rng):
    spec = some(rng, {"matchingPrecedence": [5000, 10000, 2], "priorityLevelConfiguration": [{"name": "workload-low"}, {"name": "{u}"}]},
                {"matchingPrecedence": [0, 1, -1, 10001], "priorityLevelConfiguration": [{"name": ""}, {"name": "A_"}, {}], "distinguisherMethod": [{"type": "ByUser"}, {"type": "ByNamespace"}, {"type": "X"}, {}]})
    if rng.random() < 0.7:
        spec["rules"] = listed(rng, flow_rule, 2, 0)
    return {"spec": spec}


def level(rng):
    queuing = some(rng, {"queues": [64, 1, 8], "handSize": [4, 1, 8], "queueLengthLimit": [50, 1]}, {"queues": [0, -1, 10000001, 10000000], "handSize": [0, -1, 65, 64, 12], "queueLengthLimit": [0, -1]})
    response = some(rng, {"type": ["Queue", "Reject"], "queuing": [queuing, queuing]}, {"type": ["X", ""]})
    limited = some(rng, {"limitResponse": [response], "nominalConcurrencyShares": [1, 0, 30]}, {"nominalConcurrencyShares": [-1], "lendablePercent": [0, 100, 101, -1], "borrowingLimitPercent": [0, 500, -1]})
    exempt = some(rng, {"nominalConcurrencyShares": [1]}, {"nominalConcurrencyShares": [-1], "lendablePercent": [0, 100, 101, -1]})
    out = {"spec": some(rng, {"type": ["Limited"], "limited": [limited]}, {"type": ["Exempt", "X", ""], "exempt": [exempt, {}]}, 0.15)}
    if rng.random() < 0.03:
        out["metadata"] = {"annotations": {"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares": ""}}
    return out


TOLERATIONS = [{"key": "x", "operator": "Exists"}, {"key": "x", "operator": "Exists", "effect": "NoSchedule"}, {"key": "y", "value": "v"}, {"operator": "Exists", "tolerationSeconds": 5}, {"key": "x", "operator": "Exists", "tolerationSeconds": 5, "effect": "NoExecute"}, {"key": "a b", "operator": "X"}]


def runtime_class(rng):
    scheduling = {}
    if rng.random() < 0.5:
        scheduling["nodeSelector"] = rng.choice([{"a": "b"}, {"a b": "c"}, {"a": "b c"}, {}])
    if rng.random() < 0.6:
        scheduling["tolerations"] = [rng.choice(TOLERATIONS) for _ in range(rng.randint(0, 3))]
    amounts = {name: amount for name, amount in rng.sample([("cpu", "1"), ("memory", "1Gi"), ("x", "1"), ("cpu", "-1"), ("a.b/c", "1.5"), ("memory", "1.5"), ("pods", "1"), ("hugepages-2Mi", "2Mi"), ("ephemeral-storage", "1")], rng.randint(0, 2))}
    return some(rng, {"handler": ["h", "h2"]}, {"handler": BAD_NAMES, "overhead": [{"podFixed": amounts}] * 4 + [{}], "scheduling": [scheduling] * 4}, 0.4)


def csi_node(rng):
    driver = lambda rng: some(rng, {"name": ["d", "e", "f.g"], "nodeID": ["n", "m"], "topologyKeys": [["k"], ["k", "l"], []]},
                              {"name": ["", "A", "a b", LONG], "nodeID": ["", "x" * 257, "x" * 256], "topologyKeys": [["k", "k"], [""], ["a b"], ["", ""]], "allocatable": [{"count": 1}, {"count": 0}, {"count": -1}, {}]})
    return {"spec": {"drivers": listed(rng, driver, 3, 0)}}


def attributes_class(rng):
    return some(rng, {"driverName": ["a.b", "c"], "parameters": [{"a": "b"}, {"c": "d", "e": ""}]}, {"driverName": ["", "a b", "A.B", LONG], "parameters": [{}, {"": "x"}]})


SELECTORS = [{"matchLabels": {"a": "b"}}, {}, {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}, {"matchExpressions": [{"key": "a", "operator": "In"}]}, {"matchExpressions": [{"key": "a b", "operator": "X"}], "matchLabels": {"a": "b c"}},
             {"matchLabels": {"beta.kubernetes.io/os": "linux"}}, {"matchExpressions": [{"key": "failure-domain.beta.kubernetes.io/zone", "operator": "Exists"}]}]


def storage_capacity(rng):
    return some(rng, {"storageClassName": ["x", "y"]}, {"storageClassName": ["", "A_"], "capacity": ["1Gi", "-1", "0", "1.5"], "maximumVolumeSize": ["1Gi", "-1"], "nodeTopology": SELECTORS})


def attachment(rng):
    source = rng.choice([{"persistentVolumeName": "v"}] * 4 + [{}, {"persistentVolumeName": ""}, {"persistentVolumeName": "A_"}])
    return {"spec": some(rng, {"attacher": ["a.b", "c"], "nodeName": ["n", "m"], "source": [source]}, {"attacher": ["", "a b", LONG], "nodeName": ["", "A_"]}, 0.15)}


def service_networks(rng):
    return {"spec": some(rng, {"cidrs": [["10.200.0.0/24"], ["10.200.0.0/24", "fd00:9::/112"], ["fd00:9::/112"]]},
                         {"cidrs": [[], ["10.200.0.1/24"], ["10.200.0.0/024"], ["010.200.0.0/24"], ["10.200.0.0/24", "10.201.0.0/24"], ["x"], ["x", "y"], ["10.200.0.0/24", "x"], ["10.200.0.0/24", "fd00::/112", "fd01::/112"], ["FD00::/112"], ["::ffff:10.0.0.0/120"], ["10.0.0.0/33"], ["10.0.0.0/+8"]]}, 0.5)}


def address(rng):
    parent = some(rng, {"resource": ["services", "x"], "name": ["a", "b"], "namespace": ["n"]}, {"resource": ["", "a/b"], "name": ["", ".", "a%b"], "namespace": ["", "a/b", ".."], "group": ["", "g.h", "A_"]})
    name = rng.choice(["10.9.%d.%d" % (rng.randint(0, 255), rng.randint(0, 255)), "fd00::%x" % rng.randint(1, 65535)] * 3 + ["10.9.0.01", "x", "FD00::1", "::ffff:10.9.0.1", "fd00:0::5", "10.9.0.1/24", "{u}", "fe80::1%eth0", "fd00::0001"])
    return {"metadata": {"name": name}, "spec": some(rng, {"parentRef": [parent]}, {}, 0.05)}


TAINTS = [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute", "value": "v"}, {"key": "b", "effect": "X"}, {"key": "a b", "effect": "NoSchedule"}, {"key": "c", "effect": "PreferNoSchedule", "value": "a b"}, {"key": "d"}]


def node(rng):
    return {"spec": some(rng, {}, {"podCIDR": ["10.0.0.0/24", "x", "10.0.1.0/24", "fd00::/64", ""], "podCIDRs": [["10.0.0.0/24"], ["10.0.0.0/24", "fd00::/64"], ["10.0.0.0/24", "10.0.1.0/24"], [], ["x"], ["x", "y"], ["10.0.0.0/24", "x"], ["10.0.0.0/24", "fd00::/64", "10.1.0.0/24"], ["fd00::/64", "10.0.0.0/24"], ["10.0.0.5/24"]],
                                   "taints": [[rng.choice(TAINTS) for _ in range(rng.randint(0, 3))]], "providerID": ["a", "b"], "unschedulable": [True], "externalID": ["x"]}, 0.8)}


# Requests for certificates, made by openssl: of an elliptic curve and of RSA. The keys are gone.
REQUESTS = ["LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIYU1JR0JBZ0VBTUI4eERUQUxCZ05WQkFNTUJIVnpaWEl4RGpBTUJnTlZCQW9NQldkeWIzVndNRmt3RXdZSApLb1pJemowQ0FRWUlLb1pJemowREFRY0RRZ0FFMm5VZExQZW5qQmJZVmtnSEhIYi9rQWZacy9lRi8zOEZjdVlnClpqNFB3WTV4WUVPaWpNQXJMSmxZa1VBVXg2NFN1RTN2YWdSSFVMdkNEWDJPM1RxSGVLQUFNQW9HQ0NxR1NNNDkKQkFNQ0EwZ0FNRVVDSVFEazQxdDJLKzd3TDEvdGh0WnFHbUw2aFZDMWJlRGhZNW9qMjRyOUMxSzN2d0lnWUljQQpSWmUvQVNNTVFqSHNSZjFDNlVoQzZVbGdOUHFzc3NrdmZEZXNhMHc9Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlJQ2RUQ0NBVjBDQVFBd0R6RU5NQXNHQTFVRUF3d0VkWE5sY2pDQ0FTSXdEUVlKS29aSWh2Y05BUUVCQlFBRApnZ0VQQURDQ0FRb0NnZ0VCQUxrcWtYTjZiek9LZm9tamV1WGNBeUwya0hVUHFYV2V3L0FaMi9wQkp2dk8rdDBVCkwzdldUOUdDWHVHcGZkMytjazd0S1lLVTV5Q2NMdDJnMWVHSXZwem9OSTZLZE9qOURQNFppSXl2YXFxT3V1MmcKWFg0TUhoMktGNEZMSkxDdnVMcm5hSHQ5dlNRMU1ZcTZjQ0hIa0hWNGUwWlVxUEM0ck4wUGFoQm9ITU5EWndITwpNRnhFR2V6dXB0cnpzYWtnTmxLSE4wb3hlcEZNRzI5NWFFSWozMW1FdDlDdkdPUE9nMGVLcSthUlpoOStBdGd3Cm9HMHYyWDNqWDRGQkNWdGgydFVPVHdhTEdTWVRxcGt6aDVISm5wV3EwVE9QVHd3MEk5OThXMW92bXI3UUFBR2gKYURvaHlNZE8rcDY2QVptYy9vcUFXOW9WQWZVRG1WUEV3OUR3dW5FQ0F3RUFBYUFoTUI4R0NTcUdTSWIzRFFFSgpEakVTTUJBd0RnWURWUjBSQkFjd0JZSURZUzVpTUEwR0NTcUdTSWIzRFFFQkN3VUFBNElCQVFBcHFzWFpwMVBwCjJYR016TjVWUmVXWC9CWGpIakN6MG5sUEVldUwrMDl6WDdsYkVYK0laTHFydjdmN1lrM0hqNEdCdm5wV1NES24KR2JXWlNiRGdWaXNVUDFPalZzdndBUUJveE5seVl4S0x1NlUzOE9HMGdZSmdoM3VVbzUxRFNaYXVUdjJ5dFVJMgpnb0g3TzQyeXRyZlQ0ZGJzRXgxdjRsN0hNbXB1T2JWUGxZaWRTSEhBTEVGVzJya1d0YTRub3Z3aDFpejBqQ2xJClV0YVl6TXNJLzRJUC9zeEkrNkVrZ1ZDcDVjNUFJTzJoQjM0bHFuS0JtVTlQb2NzUm5iN0hTVG8zYXZ5R0U1QnEKSVBwNllxY0VaQ3BHZGpISnlHS00weGp4ZTVpYlJuNENkZ21hWjN0MFdmYmZ3QkI5dTFob1NBRmhtOU9qZGphRgpZTzZId3kvZEZwMkgKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg=="]
CERTIFICATE = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJkakNDQVJ1Z0F3SUJBZ0lVS3JkVkZWVGhISTNmMjMvZXVkV1JWQW02ZDFJd0NnWUlLb1pJemowRUF3SXcKRHpFTk1Bc0dBMVVFQXd3RWRYTmxjakFnRncweU5qRXhNamN4TXpBeU1USmFHQTh5TVRJMk1URXdNekV6TURJeApNbG93RHpFTk1Bc0dBMVVFQXd3RWRYTmxjakJaTUJNR0J5cUdTTTQ5QWdFR0NDcUdTTTQ5QXdFSEEwSUFCTnAxCkhTejNwNHdXMkZaSUJ4eDIvNUFIMmJQM2hmOS9CWExtSUdZK0Q4R09jV0JEb296QUt5eVpXSkZBRk1ldUVyaE4KNzJvRVIxQzd3ZzE5anQwNmgzaWpVekJSTUIwR0ExVWREZ1FXQkJSa2VJWnFZZy9xNUx3TjZCWUpCcUsydW9LOAozekFmQmdOVkhTTUVHREFXZ0JSa2VJWnFZZy9xNUx3TjZCWUpCcUsydW9LODN6QVBCZ05WSFJNQkFmOEVCVEFECkFRSC9NQW9HQ0NxR1NNNDlCQU1DQTBrQU1FWUNJUURzSXRsVENvV0FhNE5VV1d2WDQvSnNVZU5tQlkzMHBSMEEKdFR5MHhqc2hSZ0loQU9zRFFXQTk2UHdKMnBUWExUT1NsaGU1NHBpcTlteTkvRzVFWCtISmNUU2oKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
# None of these is a request that somebody signed.
BROKEN = ["YQ==", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIYU1JR0JBZ0VBTUI4eERUQUxCZ05WQkFNTUJIVnpaWEl4RGpBTUJnTlZCQW9NQldkeWIzVndNRmt3RXdZSEtvWkl6ajBDQVFZSQpLb1pJemowREFRY0RRZ0FFMm5VZExQZW5qQmJZVmtnSEhIYi9rQWZacy9lRi8zOEZjdVlnWmo0UHdZNXhZRU9pak1BckxKbFlrVUFVCng2NFN1RTN2YWdSSFVMdkNEWDJPM1RxSGVLQUFNQW9HQ0NxR1NNNDlCQU1DQTBnQU1FVUNJUURrNDF0MksrN3dMMS90aHRacUdtTDYKaFZDMWJlRGhZNW9qMjRyOUMxSzN2d0lnWUljQVJaZS9BU01NUWpIc1JmMUM2VWhDNlVsZ05QcXNzc2t2ZkRlc2EwMD0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCllRPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="]
USAGES = ["signing", "digital signature", "key encipherment", "client auth", "server auth", "any", "code signing", "netscape sgc", "ocsp signing"]


def signing_request(rng):
    usages = [["client auth"], ["server auth", "key encipherment"], rng.sample(USAGES, 3)]
    return {"spec": some(rng, {"request": REQUESTS, "signerName": ["a.b/c", "kubernetes.io/kube-apiserver-client"], "usages": usages},
                         {"request": BROKEN, "signerName": ["", "x", "a/b/c", "a.b/", "/b", "A.b/c", "kubernetes.io/legacy-unknown", "a/b", "a.b/A_b", "a.b/c.d", "a.b/" + "x" * 600], "usages": [[], ["x"], ["client auth", "client auth"], ["", "any"]], "expirationSeconds": [600, 599, 0, -1, 86400]}, 0.15)}


EXPRESSIONS = ["device.driver == 'a.b'", "true", "device.attributes['a.b'].x", "device.attributes['a.b'].x == 5", "device.capacity['a.b'].size.isGreaterThan(quantity('1Gi'))", "'a.b' in device.attributes", "has(device.attributes['a.b'].x)", "cel.bind(a, device.attributes['a.b'], a.x && a.y)",
               "device.attributes['a.b'].v.isGreaterThan(semver('1.0.0'))", "device.attributes.exists(d, d == 'a')", "device.attributes.all(d, device.attributes[d].all(i, device.attributes[d][i] == 'x'))"]
BAD_EXPRESSIONS = ["1", "", "1 +", "device.none", "dev.x", "device.driver", "device.driver == 1", "device", "device.allowMultipleAllocations", "'%s'.matches('(')", "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, device.attributes[d].all(e, e.contains(device.driver))))))", "'%s' == ''" % ("x" * 10300), "device.capacity['a.b'].size"]


def selector(rng):
    return some(rng, {"cel": [{"expression": rng.choice(EXPRESSIONS)}] + [{"expression": e} for e in BAD_EXPRESSIONS]}, {}, 0.3)


def device_toleration(rng):
    return some(rng, {"key": ["k"], "operator": ["Exists", "Equal"]}, {"key": ["", "a b"], "operator": ["X", ""], "value": ["v", "a b"], "effect": ["NoSchedule", "NoExecute", "X"], "tolerationSeconds": [5]})


def device_request(rng, subs=True):
    part = some(rng, {"deviceClassName": ["c.d", "e"]}, {"deviceClassName": ["", "A_", LONG], "allocationMode": ["All", "ExactCount", "X"], "count": [1, 2, 0, -1], "adminAccess": [False, True], "capacity": [{"requests": {"x": "1"}}]}, 0.15)
    if rng.random() < 0.3:
        part["selectors"] = listed(rng, selector, 2, 0) * (1 if rng.random() < 0.95 else 33)
    if rng.random() < 0.1:
        part["tolerations"] = listed(rng, device_toleration)
    name = rng.choice(["a", "b", "a", "c"] + (BAD_NAMES if rng.random() < 0.15 else []))
    if not subs:
        part.pop("adminAccess", None)
        return dict(part, name=name)
    out = {"name": name}
    if rng.random() < 0.75:
        out["exactly"] = part
    if rng.random() < 0.25:
        out["firstAvailable"] = [device_request(rng, False) for _ in range(rng.choice([0, 1, 2, 2, 9]))]
    return out


PARAMETERS = [{"a": 1}, {}, {"a": {"b": [1, None]}}]
BAD_PARAMETERS = [None, 1, "x", [], {"a": "x" * 10300}]


def opaque(rng):
    inner = some(rng, {"driver": ["d.e", "f"], "parameters": PARAMETERS}, {"driver": ["", "A_", LONG], "parameters": BAD_PARAMETERS}, 0.2)
    return {"opaque": inner} if rng.random() < 0.95 else {}


REFERENCES = [["a"], ["b"], [], ["a", "b"], ["a/a"], ["a", "a"], ["q"], ["a/b/c"], ["A_"], ["a/A_"], [""]]
ATTRIBUTES = ["a.b/c", "a/b", "a", "a.b/1x", "/c", "a/", "", "a.b/" + "c" * 33, "A_/b", "a/b/c", "a.b/C_d"]


def claim_spec(rng):
    devices = {"requests": listed(rng, device_request, 3, 0) if rng.random() < 0.98 else [{"name": "r%d" % n, "exactly": {"deviceClassName": "x"}} for n in range(33)]}
    if rng.random() < 0.3:
        devices["constraints"] = listed(rng, lambda rng: some(rng, {"requests": REFERENCES, "matchAttribute": ATTRIBUTES}, {"distinctAttribute": ["a.b/c", "x"]}, 0.3))
    if rng.random() < 0.35:
        devices["config"] = listed(rng, lambda rng: dict(some(rng, {"requests": REFERENCES}, {}, 0.3), **opaque(rng)))
    return {"devices": devices} if rng.random() < 0.97 else {}


def claim(rng):
    return {"spec": claim_spec(rng)}


def claim_template(rng):
    meta = rng.choice([{}] * 5 + [{"labels": {"a": "b"}}, {"labels": {"a b": "c"}}, {"annotations": {"a b": "c"}}, {"name": "x", "finalizers": ["a b"]}])
    return {"spec": {"metadata": meta, "spec": claim_spec(rng)}}


def device_class(rng):
    spec = {}
    if rng.random() < 0.6:
        spec["selectors"] = listed(rng, selector, 2, 0) * (1 if rng.random() < 0.95 else 33)
    if rng.random() < 0.4:
        spec["config"] = listed(rng, opaque) * (1 if rng.random() < 0.95 else 33)
    if rng.random() < 0.1:
        spec["extendedResourceName"] = rng.choice(["a.b/c", "cpu"])
    return {"spec": spec}


NODE_TERMS = [[{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}], [], [{}, {}], [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}], [{"matchExpressions": [{"key": "a b", "operator": "X"}]}], [{"matchExpressions": [{"key": "a", "operator": "In"}]}], [{"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}], [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["x", "y"]}]}], [{"matchFields": [{"key": "x", "operator": "Exists"}]}]]


def device(rng):
    attribute = lambda: rng.choice([{"int": 1}, {"bool": False}, {"string": "x"}, {"version": "1.2.3"}, {"version": "1.2.3-a.b+c"}, {"version": "1.2"}, {"version": "01.2.3"}, {}, {"int": 1, "bool": True}, {"string": "x" * 65}])
    out = {"name": rng.choice(["x", "y", "z"] + (BAD_NAMES if rng.random() < 0.1 else []))}
    if rng.random() < 0.6:
        out["attributes"] = {rng.choice(ATTRIBUTES if rng.random() < 0.4 else ["a", "b", "c.d/e"]): attribute() for _ in range(rng.randint(0, 2))}
    if rng.random() < 0.4:
        out["capacity"] = {rng.choice(ATTRIBUTES if rng.random() < 0.2 else ["a", "b"]): {"value": rng.choice(["1Gi", "0", "-1"])}}
    for field, values in (("taints", [[{"key": "k", "effect": "NoSchedule"}], [{"key": "a b"}]]), ("nodeName", ["n"]), ("allNodes", [True]), ("bindingConditions", [["a"]])):
        if rng.random() < 0.05:
            out[field] = rng.choice(values)
    return out


def slice_(rng):
    pool = some(rng, {"name": ["p", "p/q"], "resourceSliceCount": [1, 2], "generation": [0, 1]}, {"name": ["", "A_", "p//q", "x" * 254], "resourceSliceCount": [0, -1], "generation": [-1]}, 0.12)
    spec = some(rng, {"driver": ["d.e", "f"], "pool": [pool], "nodeName": ["n"]}, {"driver": ["", "A_", LONG], "nodeName": ["", "A_"], "allNodes": [True, False], "nodeSelector": [{"nodeSelectorTerms": terms} for terms in NODE_TERMS]}, 0.15)
    if rng.random() < 0.7:
        spec["devices"] = listed(rng, device, 3, 0)
    return {"spec": spec}


STATUSES = [{"conditions": [{"type": "A", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}, {"conditions": [{"type": "A", "status": "X"}]}, {"conditions": [{"type": "A", "status": "True"}, {"type": "A", "status": "False"}]}, {"conditions": [{"type": "", "status": ""}]}, {"attached": True}, {"attachError": {"message": "m", "errorCode": -1}, "attached": False}, {}]
SIGNED = [{"conditions": [{"type": rng, "status": status}]} for rng in ("Approved", "Denied", "Failed", "X", "") for status in ("True", "False", "")] + [{"conditions": [{"type": a, "status": "True"}, {"type": b, "status": "True"}]} for a, b in (("Approved", "Denied"), ("Approved", "Approved"), ("Approved", "Failed"), ("X", "X"))] + [{"certificate": "YQ=="}, {"certificate": CERTIFICATE}, {"certificate": REQUESTS[0]}, {"certificate": ""}, {}]


def claim_status(rng):
    result = lambda rng: some(rng, {"request": ["a", "b", "a/a"], "driver": ["d"], "pool": ["p"], "device": ["x", "y"]}, {"request": ["q", "A_", "a/b/c", ""], "driver": ["", "A_"], "pool": ["", "A_", "p//q"], "device": ["", "A_"], "shareID": ["x"], "adminAccess": [True, False], "bindingConditions": [["a"]]}, 0.15)
    out = {}
    if rng.random() < 0.7:
        out["allocation"] = {"devices": {"results": listed(rng, result, 2, 0), "config": listed(rng, lambda rng: dict(some(rng, {"source": ["FromClaim", "FromClass"], "requests": REFERENCES}, {"source": ["", "X"]}, 0.2), **opaque(rng)), 1, 0)}}
        if rng.random() < 0.3:
            out["allocation"]["nodeSelector"] = {"nodeSelectorTerms": rng.choice(NODE_TERMS)}
    if rng.random() < 0.4:
        out["reservedFor"] = listed(rng, lambda rng: some(rng, {"resource": ["pods"], "name": ["p"], "uid": ["1", "2", "3"]}, {"resource": [""], "name": [""], "uid": [""]}, 0.2))
    if rng.random() < 0.4:
        data = some(rng, {}, {"interfaceName": ["eth0", "x" * 257], "hardwareAddress": ["aa", "x" * 129], "ips": [["10.0.0.1/24"], ["10.0.0.1"], ["10.0.0.1/24", "10.0.0.1/24"], ["010.0.0.1/24"], ["FD00::1/64"], ["x"]]}, 0.8)
        out["devices"] = listed(rng, lambda rng: some(rng, {"driver": ["d"], "pool": ["p"], "device": ["x", "y"]}, {"driver": ["", "A_"], "pool": [""], "device": ["z", ""], "data": PARAMETERS + BAD_PARAMETERS[1:], "networkData": [data], "conditions": [s["conditions"] for s in STATUSES[:4]]}, 0.3))
    return out


ALL = {
    "apiservices": ("/apis/apiregistration.k8s.io/v1/apiservices", api_service, lambda rng: rng.choice(STATUSES)),
    "flowschemas": ("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", flow_schema, lambda rng: rng.choice(STATUSES[:4])),
    "levels": ("/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations", level, lambda rng: rng.choice(STATUSES[:4])),
    "runtimeclasses": ("/apis/node.k8s.io/v1/runtimeclasses", runtime_class, None),
    "csinodes": ("/apis/storage.k8s.io/v1/csinodes", csi_node, None),
    "attributesclasses": ("/apis/storage.k8s.io/v1/volumeattributesclasses", attributes_class, None),
    "capacities": ("/apis/storage.k8s.io/v1/namespaces/{ns}/csistoragecapacities", storage_capacity, None),
    "attachments": ("/apis/storage.k8s.io/v1/volumeattachments", attachment, lambda rng: rng.choice(STATUSES[4:])),
    "networks": ("/apis/networking.k8s.io/v1/servicecidrs", service_networks, lambda rng: rng.choice(STATUSES[:4])),
    "addresses": ("/apis/networking.k8s.io/v1/ipaddresses", address, None),
    "nodes": ("/api/v1/nodes", node, None),
    "signingrequests": ("/apis/certificates.k8s.io/v1/certificatesigningrequests", signing_request, lambda rng: rng.choice(SIGNED)),
    "claims": ("/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims", claim, claim_status),
    "claimtemplates": ("/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaimtemplates", claim_template, None),
    "deviceclasses": ("/apis/resource.k8s.io/v1/deviceclasses", device_class, None),
    "slices": ("/apis/resource.k8s.io/v1/resourceslices", slice_, None),
}


PARAMETRIC = {"claims", "claimtemplates", "deviceclasses"}


def sequence(rng, kind):
    """One object: it is made, until a server takes one, and then it is changed in several ways."""
    path, make, status = ALL[kind]
    steps, named = [], {}
    for _ in range(rng.randint(2, 4)):
        body = make(rng)
        meta = dict({"name": NAMESPACED if "{ns}" in path else CLUSTER}, **body.get("metadata", {}))
        named = named or meta
        steps.append({"m": "POST", "p": path + "?dryRun=All" * (rng.random() < 0.3), "b": dict(body, metadata=dict(meta, name=named["name"]) if kind not in ("addresses", "apiservices") else meta)})
    one = path + "/" + named["name"].replace("/", "%2F").replace("%eth", "%25eth")
    for _ in range(rng.randint(1, 4)):
        body = make(rng)
        body.pop("metadata", None)
        kinds = [MERGE, STRATEGIC]
        choice = rng.random()
        if status and choice < 0.4:
            steps.append({"m": "PATCH", "p": one + ("/approval" if kind == "signingrequests" and rng.random() < 0.6 else "/status"), "t": MERGE, "b": {"status": status(rng)}})
        elif choice < 0.5:
            steps.append({"m": "PATCH", "p": one, "t": MERGE, "b": {"metadata": {"labels": {"x": rng.choice("yz")}}}})
        else:
            steps.append({"m": "PATCH", "p": one, "t": rng.choice(kinds), "b": body})
    steps.append({"m": "DELETE", "p": one})
    allocated = False
    for step in steps:
        allocates = "allocation" in (step.get("b", {}).get("status") or {})
        if kind in ("apiservices", "flowschemas"):
            # The server itself writes their statuses.
            step["o"] = ["metadata", "status"]
        elif kind in ("claims", "claimtemplates") and step["m"] == "PATCH" and ("spec" in step["b"] or allocates and allocated):
            # The texts show all that may not change, in a form of their own.
            step["o"] = ["message", "details"]
        allocated = allocated or allocates
        if kind in PARAMETRIC and "b" in step:
            # Parameters of drivers are kept as they are written.
            step["b"] = json.dumps(step["b"], separators=(",", ":"))
    return steps


def step(method, path, body=None, kind=""):
    return {"m": method, "p": path, **({"t": kind} if kind else {}), **({"b": body} if body is not None else {})}


def scripts():
    for kind in ALL:
        for number in range(6):
            yield "%s-%d" % (kind, number), sequence(random.Random("fixed-%s-%d" % (kind, number)), kind)
    levels, flows = ALL["levels"][0], ALL["flowschemas"][0]
    tried = lambda path, name, spec: dict(step("PATCH", path + "/" + name + "?dryRun=All", {"spec": spec}, MERGE), o=["metadata", "status"])
    yield "mandatory-levels", [tried(levels, "exempt", {"exempt": {"lendablePercent": 5}}), tried(levels, "exempt", {"exempt": {"lendablePercent": 101}}), tried(levels, "exempt", {"exempt": None, "type": "Limited"}), tried(levels, "workload-low", {"limited": {"lendablePercent": 5}})]
    yield "mandatory-schemas", [tried(flows, "probes", {"matchingPrecedence": 3}), tried(flows, "probes", {"matchingPrecedence": 1})]
    path, request = ALL["claims"][0], lambda access: {"metadata": {"name": "a"}, "spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "c", "adminAccess": access}}]}}}
    result = lambda access: {"status": {"allocation": {"devices": {"results": [{"request": "a", "driver": "d", "pool": "p", "device": "x", "adminAccess": access}]}}}}
    label = lambda value: step("PATCH", "/api/v1/namespaces/{ns}", {"metadata": {"labels": {"resource.kubernetes.io/admin-access": value}}}, MERGE)
    yield "administrators", [step("POST", path, request(True)), label("false"), step("POST", path, request(True)), step("POST", path, request(False)), step("PATCH", path + "/a/status", result(True), MERGE), label("true"), step("POST", path + "?dryRun=All", dict(request(True), metadata={"name": "b"})), step("PATCH", path + "/a/status", result(True), MERGE), label(None), step("PATCH", path + "/a/status", {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}]}}, MERGE)]
    yield "devices-told-of", [step("POST", path, request(False)), step("PATCH", path + "/a/status", result(False), MERGE), step("PATCH", path + "/a/status", {"status": {"devices": [{"driver": "d", "pool": "p", "device": "x", "networkData": {"ips": ["10.0.0.1/24"]}}]}}, MERGE), step("PATCH", path + "/a/status", {"status": {"allocation": None}}, MERGE)]
