# SPDX-License-Identifier: BSD-2-Clause
# fleet_front.py PORT UPSTREAM MODE LOG [CERT KEY]: stands before a server of 127.0.0.1's port UPSTREAM. The file MODE says
# what it does with the next connection: pass, late (passes after half a second), silent (reads, and gives no answer), deaf
# (does not even read), drip (an answer of one byte a second), or redirect URL. LOG gets the bytes that clients send,
# without TLS, and a line "front: MODE" for each connection. With CERT and KEY clients need TLS.
import socket, ssl, sys, threading, time

port, upstream, mode_file, log_file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
context = None
if len(sys.argv) > 6:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[5], sys.argv[6])
log_lock = threading.Lock()


def log(data):
    with log_lock, open(log_file, "ab") as f:
        f.write(data)


def copy(a, b, note):
    try:
        while data := a.recv(65536):
            if note:
                log(data)
            b.sendall(data)
    except OSError:
        pass
    for s in a, b:
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def serve(c, mode):
    if context:
        c = context.wrap_socket(c, server_side=True)
    if mode == "deaf":
        time.sleep(1000)
    if mode in ("pass", "late"):
        if mode == "late":
            time.sleep(0.5)
        up = socket.create_connection(("127.0.0.1", upstream))
        threading.Thread(target=copy, args=(up, c, False), daemon=True).start()
        copy(c, up, True)
        return
    log(c.recv(1 << 20))
    if mode.startswith("redirect "):
        c.sendall(b"HTTP/1.1 307 Go\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % mode[9:].encode())
    elif mode == "drip":
        for byte in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1000:
            c.sendall(bytes([byte]))
            time.sleep(1)
    else:
        time.sleep(1000)


def run(c):
    with open(mode_file) as f:
        mode = f.read().strip()
    try:
        log(b"front: %s\n" % mode.encode())
        serve(c, mode)
    except OSError:
        pass
    c.close()


s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", port))
s.listen(50)
while True:
    threading.Thread(target=run, args=(s.accept()[0],), daemon=True).start()
