"""Runs one Task and prints the conversation, with nothing but Python's standard library (3.9 or newer).

    OMNID_URL=http://127.0.0.1:8420 OMNID_TOKEN=… python3 python_stdlib.py "/run date"
"""

import http.client
import json
import os
import random
import sys
import time
import urllib.parse
import uuid

URL = urllib.parse.urlsplit(os.environ.get("OMNID_URL", "http://127.0.0.1:8420"))
TOKEN = os.environ.get("OMNID_TOKEN")
SILENCE_S = 60  # four heartbeats
LOST_CONNECTION = (OSError, http.client.HTTPException)


class Refused(Exception):
    """An answer that is not 2xx, with the server's own code for what is wrong."""

    def __init__(self, status, code, message):
        super().__init__(f"{code}: {message}")
        self.status, self.code = status, code


def send(method, path, body=None, headers=None):
    """One call on a connection of its own. Gives the answer, its body not read."""
    secure = URL.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = kind(URL.hostname, URL.port, timeout=SILENCE_S)
    headers = dict(headers or {}, connection="close")
    if TOKEN:
        headers["authorization"] = f"Bearer {TOKEN}"
    if body is not None:
        body = json.dumps(body).encode()
        headers["content-type"] = "application/json"
    connection.request(method, f"{URL.path}/api{path}", body, headers)
    answer = connection.getresponse()
    if answer.status < 300:
        return answer
    try:
        error = json.loads(answer.read())["error"]
    except (ValueError, KeyError):
        error = {"code": "http", "message": answer.reason}
    raise Refused(answer.status, error["code"], error["message"])


def call(method, path, body=None, headers=None):
    text = send(method, path, body, headers).read()
    return json.loads(text) if text else None


def persistently(attempt):
    """Tries again, a little later each time, what the network or a restarting server kept from happening."""
    wait = 1.0
    while True:
        try:
            return attempt()
        except Refused as error:
            if error.status < 500 and error.status != 429:
                raise  # it would be refused again
        except LOST_CONNECTION:
            pass
        time.sleep(wait * random.uniform(0.5, 1))
        wait = min(2 * wait, 30)


def once(path, body):
    """The key makes it safe to say the same thing twice: the second time starts nothing."""
    key = {"idempotency-key": str(uuid.uuid4())}
    return persistently(lambda: call("POST", path, body, key))


def events(answer):
    """The events of a stream as (id, name, data), until it ends."""
    event_id, name, data = None, None, []
    while line := answer.readline():
        line = line.decode().rstrip("\n")
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if line == "":
            if data:
                yield event_id, name, "\n".join(data)
            event_id, name, data = None, None, []
        elif field == "id":
            event_id = value
        elif field == "event":
            name = value
        elif field == "data":
            data.append(value)


class Conversation:
    def __init__(self, session):
        self.session = session
        self.records = []
        self.cursor = None  # the place in the stream that `records` describes

    def read_history(self):
        page = call("GET", f"{self.session}/messages")
        self.records, self.cursor = page["messages"], page["cursor"]
        for fragment in page.get("live", {}).get("fragments", []):
            self.paint(fragment)

    def paint(self, message):
        """Shows text as it is written."""
        payload = message["payload"]
        if payload["type"] == "partial_text" and "origin" not in message:
            print(payload["text"], end="", file=sys.stderr, flush=True)

    def ask(self, approval):
        payload = approval["toolCall"]["payload"]
        print(f"\nAllow {payload['name']} {payload['arguments']}? [y/N] ", end="", file=sys.stderr, flush=True)
        decision = "allow" if sys.stdin.readline().lower().startswith("y") else "deny"
        path = f"/sessions/{approval['sessionId']}/approvals/{payload['tool_call_id']}"
        try:
            persistently(lambda: call("POST", path, {"decision": decision}))
        except Refused as error:
            # Somebody else was faster, or it is over: the stream says what came of it.
            if error.code not in ("approval_already_decided", "approval_not_found"):
                raise

    def take(self, event_id, name, value):
        """Takes one event. "over" when nothing runs any more, "lost" when the history has to be read again."""
        if event_id:
            self.cursor = event_id
        if name != "server_event":
            if value["payload"].get("type", "").startswith("partial_"):
                self.paint(value)
            elif "origin" not in value:  # what has one is a child's
                self.records.append(value)
        elif value["type"] == "task_state":
            # Some records are not on the stream, such as what another person said: their number tells.
            if value["records"] != len(self.records):
                return "lost"
            if value["state"] == "idle" and value["queued"] == 0:
                return "over"
        elif value["type"] == "approval_request":
            self.ask(value)
        elif value["type"] == "resync_required":
            return "lost"
        return None

    def follow(self):
        """Follows one connection: to what `take` returns, or "cut". Raises when there was none."""
        headers = {"accept": "text/event-stream", "last-event-id": self.cursor}
        with send("GET", f"{self.session}/stream", None, headers) as answer:
            try:
                for event_id, name, data in events(answer):
                    if end := self.take(event_id, name, json.loads(data)):
                        return end
            except LOST_CONNECTION:
                pass
        return "cut"

    def run(self):
        end = "lost"
        while end != "over":
            if end == "cut":
                time.sleep(1)
            if end == "lost":
                persistently(self.read_history)
            end = persistently(self.follow)


def line(payload):
    kind = payload.get("type")  # a session_meta has none
    if kind == "text":
        return f"{payload['role']}: {payload['text']}"
    if kind == "thinking":
        return f"thinking: {payload['thinking']}"
    if kind == "tool_call":
        return f"call: {payload['name']} {payload['arguments']}"
    if kind == "approval_decision":
        return f"decision: {payload['decision']}"
    if kind == "tool_call_output":
        return f"output: {payload['output']}"
    return None


session = "/sessions/" + once("/sessions", {})["sessionId"]
once(f"{session}/tasks", {"input": sys.argv[1] if len(sys.argv) > 1 else "/run date"})
conversation = Conversation(session)
conversation.run()
for record in conversation.records:
    if said := line(record["payload"]):
        print(said)
