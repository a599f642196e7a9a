#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A daemon's control socket whose answers stand in a file.

usage: fake_daemon.py SOCKET ANSWERS [WORKLOADS]

ANSWERS is JSON: for each command a list of answers, which are given one after another, the last one again and again.
A client that asks "watch" gets the file WORKLOADS behind its second answer, and no third one. Requests, and the size of
a file whose descriptor comes with one, go to standard output.
"""
import array
import json
import os
import socket
import sys
import threading


def receive(client):
    """A line, and the descriptors that came with it; an empty one at the end."""
    text, files = b'', array.array('i')
    while not text.endswith(b'\n'):
        part, control, _, _ = client.recvmsg(4096, socket.CMSG_SPACE(files.itemsize))
        for level, kind, data in control:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                files.frombytes(data[:len(data) // files.itemsize * files.itemsize])
        if not part:
            return b'', files
        text += part
    return text, files


def answer_watch(turn, answer, workloads):
    if turn == 0:
        return json.dumps(dict(answer, ns=0, bytes=0)).encode() + b'\n'
    if turn == 1:
        return json.dumps(dict(answer, ns=900000000, bytes=len(workloads))).encode() + b'\n' + workloads
    return b''


def serve(client, answers, workloads):
    turns = 0
    while True:
        text, files = receive(client)
        if not text:
            return
        command = json.loads(text)['cmd']
        sizes = ''.join(f' and a file of {os.fstat(fd).st_size} bytes' for fd in files)
        print(text.decode().rstrip() + sizes, flush=True)
        for fd in files:
            os.close(fd)
        answer = answers[command].pop(0) if len(answers[command]) > 1 else answers[command][0]
        if command == 'watch':
            client.sendall(answer_watch(turns, answer, workloads))
            turns += 1
        else:
            client.sendall((answer if isinstance(answer, str) else json.dumps(answer)).encode() + b'\n')


def serve_to_end(client, answers, workloads):
    with client:
        try:
            serve(client, answers, workloads)
        except OSError:
            pass


def main():
    with open(sys.argv[2]) as f:
        answers = json.load(f)
    workloads = b''
    if len(sys.argv) > 3:
        with open(sys.argv[3], 'rb') as f:
            workloads = f.read()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1] + '.new')
    listener.listen(8)
    os.rename(sys.argv[1] + '.new', sys.argv[1])  # it is there when it can be asked
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve_to_end, args=(client, answers, workloads), daemon=True).start()


main()
