"""Writes a client of an HTTP API from its OpenAPI document, with nothing but the standard library.

    python3 generate.py http://127.0.0.1:7400/openapi.json > steadfast_api.py

The client is one file that needs nothing either. It has a method for each operation, named as the document names it: what stands in the path comes
first, parameters and headers are keywords, `body` is what is sent. An answer that is an error is raised as `Problem`.

    from steadfast_api import Client
    run = Client("http://127.0.0.1:7400").start_run("greet", body={"input": {"name": "Ada"}, "wait": "30s"})
"""

import json
import keyword
import re
import sys
import urllib.request

HEAD = '''"""{title} {version}: a client, made from its OpenAPI document."""

import json
import urllib.error
import urllib.parse
import urllib.request


class Problem(Exception):
    """An answer that is an error: its `status`, and its `document` where there is one."""

    def __init__(self, status, document):
        super().__init__(f"{{status}}: {{document.get('detail', '')}}")
        self.status, self.document = status, document


class Client:
    """{title} at an address, with a key where it wants one."""

    def __init__(self, url, key=None, timeout=330):
        self.url, self.key, self.timeout = url.rstrip("/"), key, timeout

    def _call(self, method, path, query, headers, body, media_type):
        query = {{name: _text(value) for name, value in query.items() if value is not None}}
        headers = {{name: _text(value) for name, value in headers.items() if value is not None}}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {{self.key}}"
        data = None
        if body is not None:
            data = body.encode() if isinstance(body, str) and media_type != "application/json" else json.dumps(body).encode()
            headers["Content-Type"] = media_type
        url = self.url + path + ("?" + urllib.parse.urlencode(query) if query else "")
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as response:
                return _read(response)
        except urllib.error.HTTPError as error:
            document = _read(error)
            raise Problem(error.code, document if isinstance(document, dict) else {{"detail": document}}) from None


def _text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def _part(value):
    return urllib.parse.quote(_text(value), safe="")


def _read(response):
    text = response.read().decode()
    return json.loads(text) if "json" in response.headers.get("Content-Type", "") else text
'''

METHODS = ("get", "put", "post", "delete", "patch", "head", "options")


def name_of(text):
    """A name as Python has them."""
    name = re.sub(r"\W", "_", text).lower()
    return name + "_" if keyword.iskeyword(name) else name


def signature(operation, parameters):
    """The arguments: what must be given first, then keywords."""
    needed = [name_of(parameter["name"]) for parameter in parameters if parameter["in"] == "path"]
    required = [name_of(p["name"]) for p in parameters if p["in"] != "path" and p.get("required")]
    optional = [name_of(p["name"]) + "=None" for p in parameters if p["in"] != "path" and not p.get("required")]
    if "requestBody" in operation:
        (required if operation["requestBody"].get("required") else optional).append(
            "body" if operation["requestBody"].get("required") else "body=None"
        )
    keywords = required + optional
    return ", ".join(["self", *needed, *(["*", *keywords] if keywords else [])])


def given(parameters, place):
    """The arguments that go to one place of a request, as a dict."""
    pairs = [f"{p['name']!r}: {name_of(p['name'])}" for p in parameters if p["in"] == place]
    return "{" + ", ".join(pairs) + "}"


def method(path, verb, operation, shared):
    parameters = shared + operation.get("parameters", [])
    filled = re.sub(r"{(\w+)}", lambda found: "{_part(" + name_of(found[1]) + ")}", path)
    body, media_type = "None", None
    if "requestBody" in operation:
        body, media_type = "body", next(iter(operation["requestBody"]["content"]))
    told = operation.get("summary") or operation["operationId"]
    arguments = [repr(verb.upper()), f'f"{filled}"', given(parameters, "query"), given(parameters, "header"), body, repr(media_type)]
    yield ""
    yield f"    def {name_of(operation['operationId'])}({signature(operation, parameters)}):"
    yield f"        {json.dumps(told, ensure_ascii=False)}"
    yield f"        return self._call({', '.join(arguments)})"


def generate(document):
    head, rest = HEAD.format(**document["info"]).split("\n\n\ndef _text", 1)
    lines = [head]
    for path, operations in document["paths"].items():
        for verb in METHODS:
            if verb in operations:
                lines.extend(method(path, verb, operations[verb], operations.get("parameters", [])))
    return "\n".join(lines) + "\n\n\ndef _text" + rest


def read(place):
    if place.startswith(("http://", "https://")):
        with urllib.request.urlopen(place) as response:
            return json.load(response)
    with open(place, encoding="utf-8") as file:
        return json.load(file)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python3 generate.py URL_OR_FILE")
    sys.stdout.write(generate(read(sys.argv[1])))
