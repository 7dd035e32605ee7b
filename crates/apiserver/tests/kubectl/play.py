#!/usr/bin/env python3
"""Plays sessions of kubectl and helm against a server and records or compares what they print.

    play.py record  --kubeconfig FILE [--only SESSION]   writes recorded/SESSION.txt: what a real server makes them print
    play.py compare --kubeconfig FILE [--only SESSION]   shows how the output differs from what was recorded; fails if it does
    play.py show    --kubeconfig FILE --only SESSION     prints the output

A session is a list of shell commands, one a line, in sessions/SESSION.txt. They run one after the other in a copy of files/, in a
namespace of their own ($NS, NAMESPACE in files); $U (UNIQUE in files) begins the names of what is in no namespace. What differs from
run to run (ages, times, identities, revisions, addresses) is replaced in the output. Namespaces and what is left in them are removed at the end.
Needs the standard library only, bash, kubectl and, for the sessions whose name begins with helm, helm.
"""
import argparse, concurrent.futures, difflib, itertools, json, os, random, re, shutil, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
RULES = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\b20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"), "TIME"),
    (re.compile(r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun),? [A-Z0-9][a-z0-9]+ [A-Z0-9][a-z0-9]* (20\d\d )?\d\d:\d\d:\d\d( [+-]\d{4}| 20\d\d)?"), "TIME"),
    (re.compile(r"\b20[2-9]\d-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? \+0000 UTC *"), "TIME"),
    (re.compile(r"since: \"?20\d\d-\d\d-\d\d\"?"), "since: DATE"),
    (re.compile(r"""((resourceVersion|resource version|Resource Version)\\?"?: *\\?"?)\d{2,}"""), r"\1REVISION"),
    (re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+"), "TOKEN"),
    (re.compile(r"https?://(127\.0\.0\.1|localhost):\d+"), "SERVER"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "SERVER"),
    (re.compile(r"\b10\.0\.\d{1,3}\.\d{1,3}\b"), "ADDRESS"),
    (re.compile(r"\b3[0-2]\d{3}(/TCP|/UDP)"), r"PORT\1"),
    (re.compile(r"(nodePort|healthCheckNodePort)(\"?: *)3[0-2]\d{3}"), r"\1\2PORT"),
    (re.compile(r"(continue\"?: *\"?)[\w=-]{20,}"), r"\1TOKEN"),
    (re.compile(r"^[EWI]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ "), "LOG "),
    (re.compile(r"^(Age:\s+)\S+$"), r"\1AGE"),
]
AGE = re.compile(r"^(\d+[ywdhms])+( \(x\d+ over (\d+[ywdhms])+\))?$|^<invalid>$")


def rows(lines):
    """Replaces the ages in tables and the width of their columns, which ages change."""
    ages, names = False, 1
    for line in lines:
        cells = re.split(r" {2,}", line.strip())
        if len(cells) > 1 and ("AGE" in cells or "LAST SEEN" in cells or "Age" in cells):
            ages, names = True, 0 if cells[0] == "LAST SEEN" else 1
        elif len(cells) > 1:
            if ages or len(cells) > 3:
                cells = [cell if i < names or not AGE.match(cell) else "AGE" for i, cell in enumerate(cells)]
        indent = line[: len(line) - len(line.lstrip(" "))]
        yield indent + "  ".join(cells)


def clean(text, names):
    for name, token in names:
        text = text.replace(name, token)
    lines = []
    for line in text.splitlines():
        line = line.rstrip()
        for pattern, token in RULES:
            line = pattern.sub(token, line)
        lines.append(line)
    return list(rows(lines))


# Numbers that make names differ: those of one run of this script always, those of two runs nearly so.
RUNS = itertools.count(random.getrandbits(16))


class Session:
    def __init__(self, name, options):
        self.name, self.options = name, options
        run = "%04x" % (next(RUNS) & 0xFFFF)
        self.ns, self.u = "session-%s" % run, "u%s" % run
        self.home = tempfile.mkdtemp(prefix="session-")
        self.work = os.path.join(self.home, "files")
        shutil.copytree(os.path.join(HERE, "files"), self.work)
        for name in os.listdir(self.work):
            if name.endswith(".yaml"):
                path = os.path.join(self.work, name)
                with open(path) as file:
                    text = file.read().replace("UNIQUE", self.u).replace("NAMESPACE", self.ns)
                with open(path, "w") as file:
                    file.write(text)
        kubeconfig = os.path.join(self.home, "kubeconfig")
        shutil.copy(options.kubeconfig, kubeconfig)
        self.env = {"PATH": os.environ["PATH"], "HOME": self.home, "KUBECONFIG": kubeconfig, "NS": self.ns, "U": self.u, "TZ": "UTC", "LC_ALL": "C.UTF-8"}
        # A client that ends at once has nothing to gain from collecting garbage beside its work: it takes a third less of a processor.
        self.env.update(GOGC="off", GOMAXPROCS="1")

    def run(self, command):
        try:
            done = subprocess.run(["bash", "-c", command], cwd=self.work, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
            return done.returncode, done.stdout.decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            return 124, "no end after 60 s\n"

    def play(self):
        """Returns the lines of the transcript, one block for each command."""
        self.run("kubectl config set-context --current --namespace $NS")
        code, text = self.run("kubectl create namespace $NS")
        if code != 0:
            raise SystemExit("cannot create a namespace: " + text)
        names = [(self.ns, "NAMESPACE"), (self.u, "UNIQUE"), (self.home, "HOME")]
        blocks = []
        try:
            with open(os.path.join(HERE, "sessions", self.name + ".txt")) as file:
                commands = [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]
            for command in commands:
                code, text = self.run(command)
                if command.endswith("# setup"):
                    continue
                block = ["$ " + command] + clean(text, names)
                if code != 0:
                    block.append("[exit %d]" % code)
                blocks.append(block)
        finally:
            self.remove()
        return blocks

    def remove(self):
        if not self.options.keep:
            self.run("""kinds=$(kubectl api-resources --namespaced --verbs=list,delete -o name | grep -v -e '^events$' | paste -sd,)
kubectl delete "$kinds" --all --ignore-not-found --wait=false --grace-period=0 --force
for object in $(kubectl get "$kinds" -o name --ignore-not-found); do kubectl patch "$object" --type merge -p '{"metadata":{"finalizers":null}}'; done
kubectl delete namespace $NS --wait=false
kubectl get namespace $NS -o json --ignore-not-found | sed 's/"kubernetes"//' | kubectl replace --raw /api/v1/namespaces/$NS/finalize -f -""")
        shutil.rmtree(self.home, ignore_errors=True)


def versions():
    """Returns the versions of the clients, as far as their output depends on them."""
    kubectl = json.loads(subprocess.run(["kubectl", "version", "--client", "-o", "json"], stdout=subprocess.PIPE, check=True).stdout)["clientVersion"]
    found = {"kubectl": ".".join(kubectl["gitVersion"].split(".")[:2])}
    if shutil.which("helm"):
        text = subprocess.run(["helm", "version", "--short"], stdout=subprocess.PIPE, check=True).stdout.decode()
        found["helm"] = ".".join(text.split("+")[0].split(".")[:2])
    return found


def recorded_versions():
    with open(os.path.join(HERE, "recorded", "versions.json")) as file:
        return json.load(file)


def names_of(options):
    every = sorted(name[:-4] for name in os.listdir(os.path.join(HERE, "sessions")) if name.endswith(".txt"))
    chosen = [name for name in every if options.only in (None, name)]
    have = versions()
    if options.what == "record":
        with open(os.path.join(HERE, "recorded", "versions.json"), "w") as file:
            file.write(json.dumps(have) + "\n")
    # Clients of another version word things otherwise.
    wanted = have if options.what != "compare" or options.any_version else recorded_versions()
    for client in ("kubectl", "helm"):
        skipped = [name for name in chosen if client == "kubectl" or name.startswith(client)]
        if skipped and have.get(client) != wanted.get(client, "?"):
            print("skipped %s: recorded with %s %s, here is %s" % (", ".join(skipped), client, wanted.get(client), have.get(client)))
            chosen = [name for name in chosen if name not in skipped]
    return chosen


def length_of(session):
    return os.path.getsize(os.path.join(HERE, "sessions", session + ".txt"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["record", "compare", "show"])
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--only")
    parser.add_argument("--keep", action="store_true", help="leave the namespaces: the server goes away")
    parser.add_argument("--any-version", action="store_true", help="compare although the clients are of another version")
    parser.add_argument("--jobs", type=int, default=6)
    options = parser.parse_args()
    # The longest begins first: no client waits alone at the end.
    names, failed, count = sorted(names_of(options), key=length_of, reverse=True), 0, 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        played = pool.map(lambda name: Session(name, options).play(), names)
        for name, blocks in zip(names, played):
            count += len(blocks)
            lines = [line for block in blocks for line in block]
            path = os.path.join(HERE, "recorded", name + ".txt")
            if options.what == "record":
                with open(path, "w") as file:
                    file.write("\n".join(lines) + "\n")
            elif options.what == "show":
                print("\n".join(lines))
            elif compare(name, path, blocks):
                print("--- %s is played again: what a busy machine made late is no difference" % name)
                failed += compare(name, path, Session(name, options).play())
    print("%d commands in %d sessions, %d differ" % (count, len(names), failed))
    return 1 if failed else 0


def compare(name, path, blocks):
    """Shows the commands whose output differs; returns how many there are."""
    with open(path) as file:
        recorded = file.read().splitlines()
    expected, failed = [], 0
    for line in recorded:
        if line.startswith("$ "):
            expected.append([line])
        else:
            expected[-1].append(line)
    if [block[0] for block in expected] != [block[0] for block in blocks]:
        print("%s: other commands than recorded: record it again" % name)
        return 1
    for want, got in zip(expected, blocks):
        if want != got:
            failed += 1
            print("=== %s: %s" % (name, want[0]))
            for line in list(difflib.unified_diff(want[1:], got[1:], "recorded", "here", lineterm="", n=2))[2:]:
                print(line)
    return failed


if __name__ == "__main__":
    sys.exit(main())
