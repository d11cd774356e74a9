"""A walk through the API with a client that `generate.py` has made: apply, start, look, tell, fail.

    python3 generate.py http://127.0.0.1:7400/openapi.json > steadfast_api.py
    python3 tour.py http://127.0.0.1:7400
"""

import sys

from steadfast_api import Client, Problem

WORKFLOW = """
kind: workflow
name: tour
input: { type: object, required: [name] }
nodes:
  ask: { wait: { signal: answer }, output: { state.answer: "${result}" } }
result: "${input.name} says ${state.answer}"
"""


def main(url):
    client = Client(url)
    print(client.health()["status"])
    print(client.apply_definitions(body=WORKFLOW)["items"][0]["status"])
    run = client.start_run("tour", body={"input": {"name": "Ada"}})
    print(run["status"])
    client.signal_run(run["id"], "answer", body="yes", idempotency_key="first")
    client.signal_run(run["id"], "answer", body="no", idempotency_key="first")
    ended = client.start_run("tour", body={"input": {"name": "Ada"}, "id": run["id"], "wait": "30s"})
    print(ended["output"])
    print([listed["id"] for listed in client.list_runs(workflow="tour", limit=10)["items"]] == [run["id"]])
    print(client.list_run_events(run["id"])["items"][-1]["type"])
    for call in (
        lambda: client.start_run("tour", body={"input": {}}),
        lambda: client.read_run("no/such run"),
        lambda: client.pause_run(run["id"]),
    ):
        try:
            call()
        except Problem as problem:
            print(problem.status, problem.document["type"])


if __name__ == "__main__":
    main(sys.argv[1])
