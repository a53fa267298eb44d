"""Runs the server between an agent and itself: tap.py FOLDER COMMAND…

What passes is copied, byte for byte, to FOLDER/to-server and FOLDER/from-server. The server gets an environment of
its own, because agents pass on more or less of theirs.
"""

import os
import subprocess
import sys
import threading


def copy(source, target, record):
    while chunk := source.read1(65536):
        record.write(chunk)
        record.flush()
        try:
            target.write(chunk)
            target.flush()
        except BrokenPipeError:
            break
    try:
        target.close()
    except BrokenPipeError:
        pass


def main():
    folder, command = sys.argv[1], sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": folder,
                   "MCP_READY_FILE": f"{folder}/ready", "PINTLE_STATE_DIR": f"{folder}/state"}
    # An agent may start a server more than once; the records follow each other.
    with open(f"{folder}/to-server", "ab") as asked, open(f"{folder}/from-server", "ab") as answered, \
            open(f"{folder}/stderr", "ab") as errors:
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment)
        threading.Thread(target=copy, args=(sys.stdin.buffer, server.stdin, asked), daemon=True).start()
        copy(server.stdout, sys.stdout.buffer, answered)
        sys.exit(server.wait())


main()
