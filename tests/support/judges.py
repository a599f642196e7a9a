# SPDX-License-Identifier: BSD-2-Clause
"""judges.py FOLDER NAME tags KEY…: pprof's tags in NAME.pprof have for each KEY the samples of dcpiprof -by, KEY.json,
and so have the processes of Firefox in NAME.firefox.

judges.py FOLDER EVENT: EVENT.pprof, EVENT.folded, … in the tools they are for, which lie in FOLDER: each has for each
function the samples that EVENT.want has (lines "SAMPLES NAME"), and no more. Says how many samples each has."""
import base64
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import jsonschema

from browser import Chromium

kept, event = os.path.abspath(sys.argv[1]), sys.argv[2]
WANT = {} if sys.argv[3:] else {
    name: int(n) for n, name in (line.rstrip("\n").split(" ", 1) for line in open(event + ".want"))}


def judged(judge, found):
    found = {name: n for name, n in found.items() if n}
    if found != WANT:
        sys.exit(f"{judge} of {event} has {sorted(found.items())}, not {sorted(WANT.items())}")
    print(f"{judge}: {sum(found.values())} samples of {event} in {len(found)} functions")


def pprof():
    text = subprocess.run(["go", "tool", "pprof", "-top", "-sample_index=0", "-nodefraction=0", "-edgefraction=0",
                           "-nodecount=100000", event + ".pprof"], check=True, capture_output=True, text=True).stdout
    found = {}
    for flat, name in re.findall(r"^ *(\d+) +[\d.]+% +[\d.]+% +\d+ +[\d.]+%  (.*)$", text, re.M):
        name = re.sub(r" \((partial-)?inline\)$", "", name)
        found[name] = found.get(name, 0) + int(flat)
    judged("pprof", found)


def speedscope():
    release = kept + "/speedscope/package/dist/release"
    jsonschema.validate(json.load(open(event + ".speedscope")), json.load(open(release + "/file-format-schema.json")))
    with open(event + ".speedscope", "rb") as file, open("file.js", "w") as script:
        data = base64.b64encode(file.read()).decode()
        script.write(f"speedscope.loadFileFromBase64('{event}.speedscope.json', '{data}')")
    browser = Chromium(height=4000) # It writes the rows that it has room for.
    try:
        browser.go(f"file://{release}/index.html#localProfilePath={os.getcwd()}/file.js")
        # The key for its table has an effect as soon as it has read the file.
        browser.wait("""window.dispatchEvent(new KeyboardEvent('keypress', { key: '3', bubbles: true })),
            /Symbol Name/.test(document.body.innerText)""".replace("\n", " "))
        text = browser.run("document.body.innerText")
    finally:
        browser.close()
    rows = re.findall(r"[\d,]+ \([^)]*\)\s+([\d,]+) \([^)]*\)\s+(.+)", text)
    judged("speedscope", {name: int(n.replace(",", "")) for n, name in rows})


def firefox_functions(kind):
    """(process, {function: samples}) of each thread. The importer's command keeps a process of its own, which says after
    half a second that it is not ready yet."""
    with tempfile.TemporaryDirectory() as home:
        def ask(*arguments):
            return subprocess.run(["node", kept + "/profiler-cli/package/dist/profiler-cli.js", *arguments],
                                  capture_output=True, text=True, env={**os.environ, "PROFILER_CLI_SESSION_DIR": home})
        ask("load", event + "." + kind)
        for _ in range(60):
            answer = ask("thread", "list", "--json")
            if answer.returncode == 0:
                break
            time.sleep(0.5)
        else:
            sys.exit(f"profiler-cli does not read {event}.{kind}: {answer.stderr}")
        threads = []
        for thread in json.loads(answer.stdout)["threads"]:
            answer = ask("thread", "functions", "--thread", thread["threadHandle"], "--include-idle", "--json",
                         "--limit", "100000")
            threads.append((thread["processName"], {f["name"]: f["selfSamples"]
                                                    for f in json.loads(answer.stdout)["functions"]}))
        ask("stop")
        return threads


def firefox(kind):
    found = {}
    for _, functions in firefox_functions(kind):
        for name, n in functions.items():
            # perf's text has no names that begin with a round bracket.
            name = re.sub(r"^\[(.*)\]$", r"(\1)", name)
            found[name] = found.get(name, 0) + n
    judged("Firefox's importer of " + kind, found)


def processes():
    """Firefox's processes have the samples that dcpiprof has of their names."""
    found = {}
    for process, functions in firefox_functions("firefox"):
        found[process] = found.get(process, 0) + sum(functions.values())
    want = [r["samples"]["cpu-clock"] for r in json.load(open("comm.json"))["rows"]]
    found.pop("unknown") # It was recorded for no process.
    if sorted(found.values()) != sorted(n for n in want if n):
        sys.exit(f"Firefox's processes are {found}, not {want}")
    print(f"Firefox: {sum(found.values())} samples in {len(found)} processes")


def otlp():
    """By a Python that has protobuf's parser: Debian's own, where another stands before it."""
    text = subprocess.run([os.environ["PYTHON_PROTOBUF"], os.path.dirname(os.path.abspath(__file__)) + "/otlp_judge.py",
                           event + ".otlp"], check=True, capture_output=True, text=True).stdout
    judged("protobuf's parser of otlp", {name: int(n) for n, name in (line.split(" ", 1) for line in text.splitlines())})


def tags(keys):
    def go(*how):
        return subprocess.run(["go", "tool", "pprof", *how, "-sample_index=0", "-unit=count", event + ".pprof"],
                              check=True, capture_output=True, text=True).stdout

    text = go("-tags")
    for key in keys:
        part = re.search(rf"^ *{key}: Total (\d+).*\n((?: .*\n)*)", text, re.M)
        found = {name: int(n) for n, name in re.findall(r"^ *(\d+)(?:\.0)? \([ \d.]+%\): (.*)$", part[2], re.M)}
        rows = [(r["name"], r["samples"]["cpu-clock"]) for r in json.load(open(key + ".json"))["rows"]]
        want = {name: n for name, n in rows if name and n}
        # Names that are not harmless have other letters there.
        if sorted(found.values()) != sorted(want.values()):
            sys.exit(f"pprof's tags {key} are {found}, not {want}")
        for name in (n for n in want if n in found):
            shown = re.search(r"accounting for (\d+)", go("-top", f"-tagfocus={key}=^{re.escape(name)}$"))
            if found[name] != want[name] or int(shown[1]) != want[name]:
                sys.exit(f"pprof has {shown[1]} samples of {key} {name}, not {want[name]}")
        print(f"pprof: {sum(found.values())} samples in {len(found)} tags {key}")


if sys.argv[3:]:
    tags(sys.argv[4:])
    processes()
    sys.exit()
pprof()
otlp()
speedscope()
for kind in "firefox", "folded", "perf":
    firefox(kind)
