# SPDX-License-Identifier: BSD-2-Clause
"""A headless Chromium that a test drives over a pipe (--remote-debugging-pipe), with no package beside Python."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

KEYS = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39, "End": 35,
        "Home": 36, "Tab": 9, "PageDown": 34}


class Browser:
    """One tab; complaints has everything that the page logs, throws or asks the network for."""

    def __init__(self, width=1280, height=800, dark=False):
        self.complaints, self.requests, self.number, self.rest, self.events = [], [], 0, b"", []
        self.home = tempfile.mkdtemp()
        to_read, self.to = os.pipe()
        self.source, to_write = os.pipe()
        self.to, self.source = [os.dup2(fd, 20 + i, inheritable=False) for i, fd in enumerate((self.to, self.source))]
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        # The child has its pipes as descriptors 3 and 4.
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "sh", program, "--headless=new", "--no-sandbox",
             "--remote-debugging-pipe", "--user-data-dir=" + self.home, "--disable-gpu", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--disable-component-update",
             "--disable-dev-shm-usage", "--hide-scrollbars", "about:blank"],
            pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.session = None
        page = next(t for t in self.ask("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log", "Network", "Performance":
            self.ask(domain + ".enable")
        self.size(width, height)
        self.dark(dark)

    def size(self, width, height):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                 mobile=width < 600)
        self.ask("Emulation.setTouchEmulationEnabled", enabled=width < 600)

    def dark(self, dark):
        self.ask("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def receive(self, deadline):
        while b"\0" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.source], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.source, 1 << 20)
            if not part:
                raise EOFError("the browser ended")
            self.rest += part
        text, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(text)
        self.note(message)
        return message

    def note(self, message):
        method, what = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = what["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded":
            self.complaints.append(what["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append("console: " + str([a.get("value") for a in what["args"]]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(what["request"]["url"])
        if method:
            self.events.append(method)

    def ask(self, method, timeout=60, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + timeout
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(method + ": " + str(answer["error"]))
                return answer["result"]

    def open(self, url):
        """The time in ms until the page has its first table, and what the page says of it."""
        start = time.monotonic()
        self.ask("Page.navigate", url="about:blank")
        start = time.monotonic()
        self.ask("Page.navigate", url=url)
        self.wait("document.documentElement && document.documentElement.dataset.ready")
        # Two frames later it is drawn.
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        return 1000 * (time.monotonic() - start)

    def busy(self):
        """Seconds in which the page's own thread has worked since it was opened."""
        return {m["name"]: m["value"] for m in self.ask("Performance.getMetrics")["metrics"]}["TaskDuration"]

    def run(self, code):
        answer = self.ask("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(code + ": " + str(answer["exceptionDetails"]["exception"].get("description")))
        return answer["result"].get("value")

    def wait(self, condition, seconds=20):
        end = time.monotonic() + seconds
        # What it asks may not be drawn yet.
        while not self.run(f"(() => {{ try {{ return ({condition}) }} catch {{ return false }} }})()"):
            if time.monotonic() > end:
                raise TimeoutError("never true: " + condition)
            time.sleep(0.005)

    def press(self, key):
        code = KEYS.get(key)
        event = {"key": key, "windowsVirtualKeyCode": code or ord(key.upper()), "code": key}
        if not code:
            event["text"] = key
        elif key == "Enter":
            event["text"] = "\r"
        self.ask("Input.dispatchKeyEvent", type="keyDown", **event)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text):
        for c in text:
            self.press(c)

    def picture(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        try:
            session, self.session = self.session, None
            self.ask("Browser.close", timeout=5)
        except (EOFError, TimeoutError, OSError):
            pass
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)
