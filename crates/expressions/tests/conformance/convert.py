#!/usr/bin/env python3
"""Makes cases.jsonl of the conformance tests of the CEL specification (github.com/google/cel-spec, tests/simple/testdata, Apache License 2.0).

    convert.py DIRECTORY-WITH-TEXTPROTO

Left out: tests of protocol buffers, of extensions that Kubernetes does not have, and of unknown values. A line is one test:
{"n": file/section/test, "e": expression, "c": whether types are checked, "b": variables, "v": value | "x": error}
Needs the standard library only.
"""
import json, re, sys

FILES = ["basic", "comparisons", "conversions", "fp_math", "integer_math", "lists", "logic", "macros", "macros2", "optionals", "parse", "plumbing", "string", "string_ext", "timestamps", "fields"]
FOREIGN = re.compile(r"TestAllTypes|NestedTestAllTypes|google\.protobuf\.(?!Timestamp|Duration)|cel\.expr|google\.type|proto|\.encode\(|math\.|TestRequired")
TOKEN = re.compile(r'\s+|#[^\n]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[{}\[\]:,;<>]|[^\s{}\[\]:,;<>"\']+')


def tokens(text):
    return [t for t in TOKEN.findall(text) if t.strip() and not t.startswith("#")]


def unquoted(token):
    out, body, place = bytearray(), token[1:-1], 0
    simple = {"n": 10, "t": 9, "r": 13, "a": 7, "b": 8, "f": 12, "v": 11, "\\": 92, "'": 39, '"': 34, "?": 63}
    while place < len(body):
        char = body[place]
        if char != "\\":
            out += char.encode()
            place += 1
            continue
        char = body[place + 1]
        if char in simple:
            out.append(simple[char])
            place += 2
        elif char in "xX":
            digits = re.match(r"[0-9a-fA-F]{1,2}", body[place + 2:]).group()
            out.append(int(digits, 16))
            place += 2 + len(digits)
        elif char in "uU":
            length = 4 if char == "u" else 8
            out += chr(int(body[place + 2:place + 2 + length], 16)).encode("utf-8", "surrogatepass")
            place += 2 + length
        else:
            digits = re.match(r"[0-7]{1,3}", body[place + 1:]).group()
            out.append(int(digits, 8))
            place += 1 + len(digits)
    return bytes(out)


class Reader:
    def __init__(self, text):
        self.tokens, self.place = tokens(text), 0

    def peek(self):
        return self.tokens[self.place] if self.place < len(self.tokens) else None

    def take(self):
        self.place += 1
        return self.tokens[self.place - 1]

    def message(self, end):
        fields = []
        while self.peek() not in (end, None):
            name = self.take()
            if name == "[":
                name = ""
                while self.peek() != "]":
                    name += self.take()
                self.take()
            if self.peek() == ":":
                self.take()
            fields.append((name, self.value()))
            while self.peek() in (",", ";"):
                self.take()
        if end:
            self.take()
        return fields

    def value(self):
        token = self.take()
        if token == "{":
            return self.message("}")
        if token == "<":
            return self.message(">")
        if token == "[":
            items = []
            while self.peek() != "]":
                items.append(self.value())
                if self.peek() == ",":
                    self.take()
            self.take()
            return items
        if token[0] in "\"'":
            text = unquoted(token)
            while self.peek() and self.peek()[0] in "\"'":
                text += unquoted(self.take())
            return text
        return token


def one(fields, name, default=None):
    return next((value for key, value in fields if key == name), default)


class Foreign(Exception):
    pass


def shown(value):
    """A value with its type."""
    if not value:
        raise Foreign()
    kind, inner = value[0]
    if kind == "int64_value":
        return {"i": str(int(inner, 0))}
    if kind == "uint64_value":
        return {"u": str(int(inner, 0))}
    if kind == "double_value":
        return {"d": inner}
    if kind == "string_value":
        return {"s": inner.decode()}
    if kind == "bytes_value":
        return {"y": inner.hex()}
    if kind == "bool_value":
        return {"b": inner == "true"}
    if kind == "null_value":
        return {"n": True}
    if kind == "type_value":
        return {"t": inner.decode()}
    if kind == "list_value":
        items = []
        for key, item in inner:
            if key == "values":
                items += [shown(part) for part in item] if item and isinstance(item[0], list) else [shown(item)]
        return {"l": items}
    if kind == "map_value":
        entries = [item for key, item in inner if key == "entries"]
        flat = []
        for item in entries:
            flat += item if item and isinstance(item[0], list) else [item]
        return {"m": [[shown(one(entry, "key")), shown(one(entry, "value"))] for entry in flat]}
    if kind == "object_value":
        of, content = inner[0]
        number = lambda name: int(one(content, name, "0"))
        if of.endswith("google.protobuf.Timestamp"):
            return {"at": str(number("seconds") * 10**9 + number("nanos"))}
        if of.endswith("google.protobuf.Duration"):
            return {"for": str(number("seconds") * 10**9 + number("nanos"))}
    raise Foreign()


def main():
    out, left = [], 0
    for file in FILES:
        for key, section in Reader(open("%s/%s.textproto" % (sys.argv[1], file)).read()).message(None):
            if key != "section":
                continue
            for key, test in section:
                if key != "test":
                    continue
                expr = one(test, "expr").decode("utf-8", "surrogatepass")
                try:
                    if FOREIGN.search(expr) or one(test, "container") or one(test, "unknown") or one(test, "any_unknowns"):
                        raise Foreign()
                    case = {"n": "%s/%s/%s" % (file, one(section, "name").decode(), one(test, "name").decode()), "e": expr, "c": one(test, "disable_check") != "true"}
                    bindings = {one(b, "key").decode(): shown(one(one(b, "value"), "value")) for k, b in test if k == "bindings"}
                    if bindings:
                        case["b"] = bindings
                    error = one(test, "eval_error")
                    typed = one(test, "typed_result")
                    if error is not None:
                        case["x"] = True
                    elif typed is not None:
                        if not one(typed, "result"):
                            raise Foreign()
                        case["v"] = shown(one(typed, "result"))
                    else:
                        case["v"] = shown(one(test, "value", [("bool_value", "true")]))
                    json.dumps(case, ensure_ascii=False).encode()
                    out.append(case)
                except (Foreign, UnicodeEncodeError, UnicodeDecodeError):
                    left += 1
    with open(__file__.rsplit("/", 1)[0] + "/cases.jsonl", "w") as file:
        for case in out:
            file.write(json.dumps(case, separators=(",", ":"), ensure_ascii=False) + "\n")
    print(len(out), "tests,", left, "left out")


if __name__ == "__main__":
    main()
