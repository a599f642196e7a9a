#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A ClickHouse server that knows the answers to questions that were asked of a real one.

usage: store_answers.py FILE [SERVER EPOCH]

FILE has the questions and their answers, as JSON. With SERVER (a URL) requests go there, and FILE becomes what was asked
and answered, and EPOCH, when this process is ended. Without it, what FILE does not have is answered by an error. Prints
the port.
"""
import base64
import http.server
import json
import signal
import sys
import urllib.error
import urllib.parse
import urllib.request
import zlib


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    wbufsize = -1  # head and body go together: apart, the second would wait for an acknowledgement

    def log_message(self, *args):
        pass

    def forward(self, key, body):
        try:
            with urllib.request.urlopen(self.server.real + self.path, body) as answer:
                status, data = 200, answer.read()
        except urllib.error.HTTPError as error:
            status, data = error.code, error.read()
        if key and status == 200:
            packed = base64.b64encode(zlib.compress(data, 9)).decode()
            if self.server.answers.setdefault(key, packed) != packed:
                status, data = 500, b'Code: 1. This question had another answer before\n'
        return status, data

    def known(self, key):
        if key in self.server.answers:
            return 200, zlib.decompress(base64.b64decode(self.server.answers[key]))
        return 500, f'Code: 1. Nothing is recorded for: {key}\n'.encode()

    def do_POST(self):
        words = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        is_question = 'query' not in words and body.endswith(b' FORMAT RowBinary')
        key = is_question and f'{words["database"][0]}: {body.decode()}'
        status, data = self.forward(key, body) if self.server.real else self.known(key)
        self.send_response(status)
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main():
    path, real = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    server.daemon_threads = True
    server.real = real
    server.answers = {}
    if not real:
        with open(path) as f:
            server.answers = json.load(f)['answers']
    signal.signal(signal.SIGTERM, lambda *args: sys.exit(0))
    print(server.server_address[1], flush=True)
    try:
        server.serve_forever()
    finally:
        if real:
            with open(path, 'w') as f:
                json.dump({'epoch': int(sys.argv[3]), 'answers': server.answers}, f, indent=0, sort_keys=True)
                f.write('\n')


main()
