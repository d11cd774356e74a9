"""A worker for Steadfast in Python, with nothing but the standard library.

It asks for tasks of a queue, keeps each by heartbeats while it works, and hands in what came of it. A task that it cannot finish goes to another
worker; the id of a task is the same for every attempt, so that whoever is called can tell a repetition.

    python3 worker.py http://127.0.0.1:7400 greetings
"""

import json
import sys
import threading
import time
import urllib.error
import urllib.request

LEASE_SECONDS = 30


class LeaseLost(Exception):
    """The task belongs to somebody else by now: leave it alone."""


class Final(Exception):
    """A failure that no further attempt can mend."""


def call(url, path, body, timeout=90):
    request = urllib.request.Request(
        url + path, data=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        if error.code == 409:
            raise LeaseLost(path) from error
        raise


def handle(task):
    """The work itself."""
    name = task["input"].get("name")
    if not name:
        raise Final("the input has no `name`")
    return {"text": f"hello {name}", "worker": "python"}


def keep(url, task, done):
    """Says that the work goes on, three times in each lease."""
    while not done.wait(LEASE_SECONDS / 3):
        try:
            call(url, f"/v1/tasks/{task['id']}/heartbeat", {"lease": task["lease"]})
        except (LeaseLost, OSError):
            return


def work_on(url, task):
    done = threading.Event()
    threading.Thread(target=keep, args=(url, task, done), daemon=True).start()
    try:
        path, said = "complete", {"result": handle(task)}
    except Exception as error:  # whatever it was, the run is told
        path = "fail"
        said = {"error": {"message": str(error), "retryable": not isinstance(error, Final)}}
    finally:
        done.set()
    try:
        call(url, f"/v1/tasks/{task['id']}/{path}", {"lease": task["lease"], **said})
    except LeaseLost:
        print(f"{task['id']} went to another worker", file=sys.stderr)


def main(url, queue):
    ask = {"queue": queue, "worker": "python", "max": 10, "wait": "20s", "visibility": f"{LEASE_SECONDS}s"}
    print(f"asking {url} for tasks of {queue}", flush=True)
    while True:
        try:
            for task in call(url, "/v1/tasks/lease", ask)["tasks"]:
                work_on(url, task)
                print(f"done with {task['id']}", flush=True)
        except OSError as error:  # the server is not there, or starts again
            print(f"asking again in a second: {error}", file=sys.stderr)
            time.sleep(1)


if __name__ == "__main__":
    main(*sys.argv[1:3])
