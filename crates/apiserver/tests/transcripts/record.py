#!/usr/bin/env python3
"""Records what a Kubernetes API server answers to request scripts, and compares servers.

    record.py record  --server https://127.0.0.1:16443 [--only NAME]   writes *.jsonl beside this file
    record.py compare --server URL [--token TOKEN] [--only NAME]       plays the recorded scripts against a server, shows differences
    record.py random  --server URL --other URL [--count 300 --seed 1]  random patch sequences against two servers at once
                      [--only KIND]                                    random objects of a kind of rare.py instead, `all` for each of them

A script is a list of steps; each line of a file is one script with its answers:
{"n": name, "s": [{"m": method, "p": path, "t": type of the body, "a": accept, "b": body, "z": seconds to wait before a WAIT, "j": patch of mutating webhooks, "d": message of validating ones, "o": parts of the answer that are left out, "r": {"s": status, "w": warnings, "b": answer, "v": reviews}}]}
Paths and bodies name the script's namespace {ns} and a prefix {u} for names outside of namespaces. {rv:N} is the revision in the
answer of step N, {x*N} is N letters. WAIT repeats a GET until it succeeds. Answers are normalised: what differs from run to run is replaced. Needs the standard library only, and openssl for
the webhook that notes reviews. Its address is {hook}, its authority is {ca}.
"""
import argparse, contextlib, concurrent.futures, http.client, json, os, random, re, ssl, sys, time, urllib.parse

import edges, expressions, rare, reviews, scripts

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = {"": "application/json", "json": "application/json-patch+json", "merge": "application/merge-patch+json",
         "strategic": "application/strategic-merge-patch+json", "apply": "application/apply-patch+yaml", "yaml": "application/yaml"}
ACCEPTS = {"": "application/json", "table": "application/json;as=Table;v=v1;g=meta.k8s.io", "partial": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
           "partials": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"20(2[5-9]|3\d)-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
AGE = re.compile(r"^(\d+[ywdhms])+$")
CLUSTER_IP = re.compile(r"^10\.\d+\.\d+\.\d+$")
REVISION = re.compile(r'(resourceVersion\\*":\\*"|ResourceVersion in record \(|ResourceVersion in object meta: |Too large resource version: \d+, current: )\d+')
SELF_TYPE = re.compile(r"selfType\d+")
NODE_PORT = re.compile(r":3\d{4}/")


class Server:
    def __init__(self, url, token):
        self.url, self.token = urllib.parse.urlparse(url), token

    def send(self, method, path, body, content, accept):
        if self.url.scheme == "https":
            link = http.client.HTTPSConnection(self.url.hostname, self.url.port, context=ssl._create_unverified_context(), timeout=30)
        else:
            link = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=30)
        headers = {"Authorization": "Bearer " + self.token, "Accept": accept, "User-Agent": "recorder/1.0"}
        if body is not None:
            headers["Content-Type"] = content
            body = body.encode()
        link.request(method, urllib.parse.quote(path, safe="/?&=%:,;()!+~*.@"), body, headers)
        answer = link.getresponse()
        text = answer.read().decode("utf-8", "replace")
        warnings = [w.split('"', 1)[1].rsplit('"', 1)[0].replace('\\"', '"') for w in answer.headers.get_all("Warning") or []]
        return answer.status, text, warnings


def normalised(value, key="", parent=None):
    if isinstance(value, dict):
        out = {}
        for k, v in value.items():
            if k == "description" and "priority" in value:
                continue
            out[k] = normalised(v, k, value)
        meta = out
        if "generateName" in meta and str(meta.get("name", "")).startswith(meta["generateName"]):
            meta["name"] = meta["generateName"] + "*"
        if out.get("kind") == "Status" and isinstance(out.get("details"), dict):
            causes = out["details"].get("causes")
            if causes and len(causes) > 1:
                causes.sort(key=lambda c: (c.get("field", ""), c.get("message", "")))
                out["message"] = str(out.get("message", "")).split(": ")[0]
        return out
    if isinstance(value, list):
        if key == "cells":
            return ["AGE" if isinstance(c, str) and AGE.match(c) else normalised(c, "", value) for c in value]
        items = [normalised(v, "", value) for v in value]
        if key == "managedFields":
            items.sort(key=lambda e: (e.get("operation", ""), e.get("manager", ""), e.get("apiVersion", ""), e.get("subresource", "")))
        return items
    if isinstance(value, str):
        if key == "resourceVersion" and value.isdigit() and value != "0":
            return "RV"
        if key == "serverAddress":
            return "ADDRESS"
        if key == "continue" and value:
            return "CONTINUE"
        if CLUSTER_IP.match(value):
            return "CLUSTERIP"
        value = SELF_TYPE.sub("selfType", UUID.sub("UUID", value))
        value = TIME.sub("TIME", value)
        value = REVISION.sub(r"\1RV", value)
        return NODE_PORT.sub(":NODEPORT/", value)
    if key in ("nodePort", "healthCheckNodePort") and isinstance(value, int) and value >= 30000:
        return "NODEPORT"
    return value


def back(text, names):
    for name, token in names:
        text = text.replace(name, token)
    return text


class Run:
    """One script against one server."""

    def __init__(self, server, run, number, hook=None):
        self.server, self.answers, self.hook = server, [], hook
        self.ns, self.u = "ns%s%d" % (run, number), "u%s%d" % (run, number)

    def fill(self, text):
        text = text.replace("{ns}", self.ns).replace("{u}", self.u)
        text = self.hook.fill(text) if self.hook else text
        text = re.sub(r"\{x\*(\d+)\}", lambda match: "x" * int(match.group(1)), text)

        def look(match):
            answer = self.answers[int(match.group(2))]
            value = answer.get("metadata", {}) if isinstance(answer, dict) else {}
            return str(value.get({"rv": "resourceVersion", "uid": "uid", "continue": "continue", "name": "name"}[match.group(1)], ""))

        return re.sub(r"\{(rv|uid|continue|name):(\d+)\}", look, text)

    def play(self, steps):
        if self.hook:
            self.hook.step = {}
        self.server.send("POST", "/api/v1/namespaces", json.dumps({"metadata": {"name": self.ns}}), "application/json", "application/json")
        # What decides about a write learns of a namespace in its own time.
        while self.hook and self.server.send("POST", "/api/v1/namespaces/%s/configmaps?dryRun=All" % self.ns, json.dumps({"metadata": {"name": "a"}}), "application/json", "application/json")[0] != 201:
            time.sleep(0.05)
        out = []
        for step in steps:
            if step["m"] == "WAIT":
                time.sleep(step.get("z", 0))
                # The server takes up definitions in its own time, and never those that it refused.
                refused = any(isinstance(a, dict) and a.get("status") == "Failure" for a in self.answers)
                for _ in range(0 if refused else 200):
                    if self.server.send("GET", self.fill(step["p"]), None, "", "application/json")[0] == 200:
                        break
                    time.sleep(0.05)
                self.answers.append(None)
                out.append({"s": 200})
                continue
            body = step.get("b")
            if body is not None:
                body = self.fill(body if isinstance(body, str) else json.dumps(body))
            if self.hook:
                self.hook.take()
                self.hook.step = step
            status, text, warnings = self.server.send(step["m"], self.fill(step["p"]), body, TYPES.get(step.get("t", ""), step.get("t", "")), ACCEPTS.get(step.get("a", ""), step.get("a", "")))
            names = [(self.ns, "{ns}"), (self.u, "{u}")]
            if self.hook:
                names += [(self.hook.url, "{hook}"), ("https://127.0.0.1:NODEPORT", "{hook}"), (self.hook.authority, "{ca}")]
            try:
                raw = json.loads(text)
            except ValueError:
                lines = [l for l in text.splitlines() if l.strip()]
                try:
                    raw = [json.loads(l) for l in lines]
                except ValueError:
                    raw = text
            self.answers.append(raw)
            if isinstance(raw, dict):
                raw = {key: value for key, value in raw.items() if key not in step.get("o", [])}
            clean = json.loads(back(json.dumps(normalised(raw)), names))
            answer = {"s": status, "b": clean}
            if warnings:
                answer["w"] = sorted(back(w, names) for w in warnings)
            seen = self.hook.take() if self.hook else []
            if seen:
                answer["v"] = json.loads(back(json.dumps(normalised(seen)), names))
            out.append(answer)
        return out


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def differences(expected, found, path=""):
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted(set(expected) | set(found)):
            yield from differences(expected.get(key, "<absent>"), found.get(key, "<absent>"), path + "." + key)
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for index, (a, b) in enumerate(zip(expected, found)):
            yield from differences(a, b, "%s[%d]" % (path, index))
    elif expected != found:
        yield "%s: expected %s, found %s" % (path, compact(expected)[:300], compact(found)[:300])


@contextlib.contextmanager
def hooked(server):
    """Registers a webhook for everything, and takes it away at the end."""
    hook = reviews.Hook()
    for path, body in hook.configurations():
        server.send("POST", path, body, "application/json", "application/json")
    try:
        for _ in range(200):
            time.sleep(0.1)
            server.send("POST", "/api/v1/namespaces/default/configmaps?dryRun=All", json.dumps({"metadata": {"name": "a"}}), "application/json", "application/json")
            if len(hook.take()) == 2:
                break
        yield hook
    finally:
        for path, body in hook.configurations():
            server.send("DELETE", path + "/" + json.loads(body)["metadata"]["name"], None, "", "application/json")


def record(args):
    server = Server(args.server, args.token)
    run = "%x" % (int(time.time()) % 0xFFFFF)
    families, number, total = dict(scripts.families(), edges=list(edges.scripts()), rare=list(rare.scripts()), rules=list(expressions.rules()), policies=list(expressions.policies()), reviews=list(reviews.scripts())), 0, 0
    for family, all_steps in families.items():
        if args.only and not family.startswith(args.only):
            continue
        jobs = []
        reviewed = hooked(server) if family == "reviews" else contextlib.nullcontext()
        with reviewed as hook, concurrent.futures.ThreadPoolExecutor(4 if family not in scripts.SERIAL else 1) as pool:
            for name, steps in all_steps:
                number += 1
                jobs.append((name, steps, pool.submit(Run(server, run, number, hook).play, steps)))
        with open(os.path.join(HERE, family + ".jsonl"), "w") as out:
            for name, steps, job in jobs:
                answers = job.result()
                out.write(compact({"n": name, "s": [dict(step, r=answer) for step, answer in zip(steps, answers)]}) + "\n")
        total += len(jobs)
        print("%-12s %4d scripts %8d bytes" % (family, len(jobs), os.path.getsize(os.path.join(HERE, family + ".jsonl"))))
    print(total, "scripts")


def compare(args):
    server = Server(args.server, args.token)
    run, number, bad = "%x" % (int(time.time()) % 0xFFFFF), 0, 0
    for file in sorted(f for f in os.listdir(HERE) if f.endswith(".jsonl")):
        lines = open(os.path.join(HERE, file)).readlines()
        played = [script for script in map(json.loads, lines) if (file + "/" + script["n"]).startswith(args.only)]
        with hooked(server) if played and file == "reviews.jsonl" else contextlib.nullcontext() as hook:
          for script in played:
            number += 1
            found = Run(server, run, number, hook).play(script["s"])
            lines = []
            for index, (step, answer) in enumerate(zip(script["s"], found)):
                lines += ["  step %d %s %s%s" % (index, step["m"], step["p"], d) for d in differences(step["r"], answer)]
            if lines:
                bad += 1
                print("%s/%s" % (file[:-6], script["n"]))
                print("\n".join(lines[:8]))
    print("%d scripts, %d with differences" % (number, bad))
    return bad != 0


def randoms(args):
    one, two = Server(args.server, args.token), Server(args.other, args.other_token or args.token)
    run, bad = "%x" % (int(time.time()) % 0xFFFFF), 0
    kinds = list(rare.ALL) if args.only == "all" else [args.only]
    for number in range(args.count):
        rng, kind = random.Random("%s-%d" % (args.seed, number)), kinds[number % len(kinds)]
        steps = rare.sequence(rng, kind) if kind else scripts.random_sequence(rng)
        left, right = Run(one, run, number).play(steps), Run(two, run, number).play(steps)
        lines = []
        for index, (step, a, b) in enumerate(zip(steps, left, right)):
            lines += ["  step %d %s%s" % (index, step.get("t", step["m"]), d) for d in differences(a, b)]
        if lines:
            bad += 1
            print("sequence", number)
            print("\n".join(lines[:6]))
    print("%d sequences, %d with differences" % (args.count, bad))
    return bad != 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["record", "compare", "random"])
    parser.add_argument("--server", default="https://127.0.0.1:16443")
    parser.add_argument("--token", default="bench-token")
    parser.add_argument("--other")
    parser.add_argument("--other-token")
    parser.add_argument("--only", default="")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", default="1")
    args = parser.parse_args()
    return {"record": record, "compare": compare, "random": randoms}[args.action](args)


if __name__ == "__main__":
    sys.exit(main())
