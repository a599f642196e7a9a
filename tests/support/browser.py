# SPDX-License-Identifier: BSD-2-Clause
"""Headless browsers that a test drives with no package beside Python: Chromium over a pipe (--remote-debugging-pipe),
Firefox over its socket for tests (-marionette)."""
import base64
import json
import os
import select
import shutil
import socket
import subprocess
import tempfile
import time

KEYS = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39, "End": 35,
        "Home": 36, "Tab": 9, "PageDown": 34}


class Tab:
    """What both browsers do in the same way; they have run(), go() and press()."""

    def open(self, url):
        """The time in ms until the page has its first table, and what the page says of it."""
        self.go("about:blank")
        start = time.monotonic()
        self.go(url)
        self.wait("document.documentElement && document.documentElement.dataset.ready")
        # Two frames later it is drawn.
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        return 1000 * (time.monotonic() - start)

    def wait(self, condition, seconds=20):
        end = time.monotonic() + seconds
        # What it asks may not be drawn yet.
        while not self.run(f"(() => {{ try {{ return ({condition}) }} catch {{ return false }} }})()"):
            if time.monotonic() > end:
                raise TimeoutError("never true: " + condition)
            time.sleep(0.005)

    def type(self, text):
        for c in text:
            self.press(c)


class Chromium(Tab):
    """complaints has everything that the page logs and throws, requests what it asks for."""

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
        self.media(dark)

    def size(self, width, height):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                 mobile=width < 600)
        self.ask("Emulation.setTouchEmulationEnabled", enabled=width < 600)

    def media(self, dark=False, paper=False):
        self.ask("Emulation.setEmulatedMedia", media="print" if paper else "",
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

    def go(self, url):
        self.ask("Page.navigate", url=url)

    def busy(self):
        """Seconds in which the page's own thread has worked since it was opened."""
        return {m["name"]: m["value"] for m in self.ask("Performance.getMetrics")["metrics"]}["TaskDuration"]

    def run(self, code):
        answer = self.ask("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(code + ": " + str(answer["exceptionDetails"]["exception"].get("description")))
        return answer["result"].get("value")

    def press(self, key):
        code = KEYS.get(key)
        event = {"key": key, "windowsVirtualKeyCode": code or ord(key.upper()), "code": key}
        if not code:
            event["text"] = key
        elif key == "Enter":
            event["text"] = "\r"
        self.ask("Input.dispatchKeyEvent", type="keyDown", **event)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **event)

    def printed(self):
        return base64.b64decode(self.ask("Page.printToPDF")["data"])

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


class Firefox(Tab):
    """complaints has the errors of pages; what it asks the network for is known to Chromium alone."""

    SPECIAL = {"Enter": "\ue007", "Escape": "\ue00c", "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014",
               "ArrowDown": "\ue015"}

    def __init__(self, width=1280, height=800):
        self.number, self.rest, self.requests = 0, b"", []
        self.home = tempfile.mkdtemp()
        with open(self.home + "/user.js", "w") as f:
            f.write('user_pref("marionette.port", 0);\nuser_pref("app.update.disabledForTesting", true);\n')
        self.process = subprocess.Popen(
            ["firefox-esr", "-headless", "-marionette", "-remote-allow-system-access", "-no-remote", "-profile",
             self.home],
            env={**os.environ, "HOME": self.home, "MOZ_HEADLESS_WIDTH": str(width), "MOZ_HEADLESS_HEIGHT": str(height)},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.socket = socket.create_connection(("127.0.0.1", self.port()), timeout=60)
        self.receive()
        self.ask("WebDriver:NewSession")
        self.size(width, height)

    def port(self):
        for _ in range(600):
            try:
                with open(self.home + "/MarionetteActivePort") as f:
                    return int(f.read())
            except (FileNotFoundError, ValueError):
                time.sleep(0.1)
        raise TimeoutError("Firefox does not start")

    def receive(self):
        while b":" not in self.rest or len(self.rest) < sum(self.head()):
            part = self.socket.recv(1 << 20)
            if not part:
                raise EOFError("the browser ended")
            self.rest += part
        start, size = self.head()
        text, self.rest = self.rest[start:start + size], self.rest[start + size:]
        return json.loads(text)

    def head(self):
        """Where the message begins and how long it is."""
        digits = self.rest.partition(b":")[0]
        return len(digits) + 1, int(digits)

    def ask(self, command, **params):
        self.number += 1
        text = json.dumps([0, self.number, command, params]).encode()
        self.socket.sendall(str(len(text)).encode() + b":" + text)
        _, number, error, result = self.receive()
        assert number == self.number
        if error:
            raise RuntimeError(f"{command}: {error['message']}")
        return result

    def run(self, code):
        """@code is an expression, or statements without a value."""
        try:
            return self.ask("WebDriver:ExecuteScript", script=f"return ({code});", args=[])["value"]
        except RuntimeError as e:
            if "SyntaxError" not in str(e):
                raise
            return self.ask("WebDriver:ExecuteScript", script=code, args=[])["value"]

    def go(self, url):
        self.ask("WebDriver:Navigate", url=url)

    def press(self, key):
        key = self.SPECIAL.get(key, key)
        self.ask("WebDriver:PerformActions", actions=[
            {"type": "key", "id": "keyboard", "actions": [{"type": t, "value": key} for t in ("keyDown", "keyUp")]}])

    def size(self, width, height):
        """Its windows are not narrower than 450 pixels."""
        self.ask("WebDriver:SetWindowRect", width=width, height=height)

    def printed(self):
        return base64.b64decode(self.ask("WebDriver:Print")["value"])

    @property
    def complaints(self):
        self.ask("Marionette:SetContext", value="chrome")
        found = self.run("""Services.console.getMessageArray().filter((m) => m instanceof Ci.nsIScriptError &&
            /^file:/.test(m.sourceName)).map((m) => m.message)""")
        self.ask("Marionette:SetContext", value="content")
        return found

    def close(self):
        try:
            self.ask("Marionette:Quit", flags=["eForceQuit"])
            self.process.wait(10)
        except (EOFError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)
