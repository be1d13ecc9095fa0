#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""One end of the transfers of a key-value cache, by Mooncake's transfer engine.

    kv_engine.py receive DEV...
    kv_engine.py handoff DEV PEER SAMPLES [WATCH]
    kv_engine.py offload DEV PEER READY

"receive" prints a PEER, SESSION:ADDRESS, for one of the others, and waits for a signal.
"handoff" writes 64 KB there, again and again with pauses, and prints its latencies; WATCH is
a file to print before and after. "offload" writes 1 MB, several at a time, until SIGTERM. It
creates the file READY after the first of them, and prints what it has moved for each SIGUSR1
and at the end. Both read back what they have
written, and compare.
"""
import ctypes
import json
import mmap
import pathlib
import random
import signal
import sys
import time

from engine import TransferEngine

HANDOFF = 64 << 10
OFFLOAD = 1 << 20
DEPTH = 8
WARMUP = 20
# Between hand-offs: no other period fits in, and 27 Mbit/s are sent.
PAUSE_S = (0.010, 0.030)
# How often a program looks whether its transfer is done
LOOK_S = 20e-6
LOOK_OFFLOAD_S = 1e-3


def start(devices):
    """An engine, and a buffer that it knows"""
    engine = TransferEngine()
    if engine.initialize("127.0.0.1", "P2PHANDSHAKE", "rdma", devices):
        sys.exit(f"kv_engine: no engine on {devices}")
    # One half is sent, and what is read back goes to the other.
    memory = mmap.mmap(-1, 2 * DEPTH * OFFLOAD)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if engine.register_memory(address, len(memory)):
        sys.exit(f"kv_engine: no memory on {devices}")
    return engine, memory, address


def parse_peer(words):
    """Its session, and the address of its buffer"""
    session, _, address = words.rpartition(":")
    return session, int(address)


def submit(engine, session, local, remote, length):
    """The number of a transfer that has begun"""
    batch = engine.transfer_submit_write(session, local, remote, length)
    if not batch:
        sys.exit("kv_engine: a transfer was refused")
    return batch


def is_done(engine, batch):
    """Has it ended? If so, well"""
    status = engine.transfer_check_status(batch)
    if status < 0:
        sys.exit(f"kv_engine: a transfer failed, {status}")
    return status == 1


def compare(engine, memory, address, session, remote, length):
    """Has the peer what was sent?"""
    half = DEPTH * OFFLOAD
    if engine.transfer_sync_read(session, address + half, remote, length):
        sys.exit("kv_engine: cannot read back")
    if memory[half:half + length] != memory[:length]:
        sys.exit("kv_engine: the peer has other data")


def receive(devices):
    """Others write to the memory."""
    engine, _memory, address = start(",".join(devices))
    print(f"127.0.0.1:{engine.get_rpc_port()}:{address}", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


def handoff(device, peer, samples, watch=None):
    """One at a time"""
    engine, memory, address = start(device)
    session, remote = parse_peer(peer)
    memory[:HANDOFF] = random.randbytes(HANDOFF)
    pauses = random.Random(1)
    latencies = []
    for i in range(-WARMUP, samples):
        if i == 0:
            before = open(watch, encoding="ascii").read() if watch else None
            began = time.monotonic_ns()
        begin = time.monotonic_ns()
        batch = submit(engine, session, address, remote, HANDOFF)
        while not is_done(engine, batch):
            time.sleep(LOOK_S)
        latencies.append(time.monotonic_ns() - begin)
        time.sleep(pauses.uniform(*PAUSE_S))
    elapsed = time.monotonic_ns() - began
    after = open(watch, encoding="ascii").read() if watch else None
    compare(engine, memory, address, session, remote, HANDOFF)
    watched = []
    if watch:
        watched = [{"file": watch, "before": before.strip(), "after": after.strip()}]
    latencies = sorted(latencies[WARMUP:])
    figures = {f"{name}_ns": latencies[(percent * samples + 99) // 100 - 1]
               for name, percent in (("median", 50), ("p90", 90), ("p99", 99))}
    print(json.dumps(figures | {"elapsed_ns": elapsed, "watch": watched,
                                "samples_ns": latencies}), flush=True)


def print_rate(moved, used, began):
    """What an offload has moved and used since"""
    seconds = (time.monotonic_ns() - began) / 1e9
    cpu_us = (time.process_time_ns() - used) / 1e3
    print(json.dumps({"bytes_per_s": moved / seconds,
                      "messages_per_s": moved / OFFLOAD / seconds,
                      "cpu_us_per_mb": cpu_us / max(1, moved / 1e6)}), flush=True)


def offload(device, peer, ready):
    """Until it is told to end"""
    engine, memory, address = start(device)
    session, remote = parse_peer(peer)
    memory[:DEPTH * OFFLOAD] = random.randbytes(DEPTH * OFFLOAD)
    told = []
    for sig in (signal.SIGUSR1, signal.SIGTERM):
        signal.signal(sig, lambda n, _frame: told.append(n))
    batches = [0] * DEPTH
    moved, used, began = 0, time.process_time_ns(), time.monotonic_ns()
    while signal.SIGTERM not in told[:1]:
        if told:
            told.pop(0)
            moved, used, began = 0, time.process_time_ns(), time.monotonic_ns()
        for i, batch in enumerate(batches):
            if batch and not is_done(engine, batch):
                continue
            if batch:
                moved += OFFLOAD
                pathlib.Path(ready).touch()
            at = i * OFFLOAD
            batches[i] = submit(engine, session, address + at, remote + at, OFFLOAD)
        time.sleep(LOOK_OFFLOAD_S)
        if told:
            print_rate(moved, used, began)
    while any(batches):
        batches = [b for b in batches if not is_done(engine, b)]
    compare(engine, memory, address, session, remote, DEPTH * OFFLOAD)


def main():
    """What the first word says"""
    what, *words = sys.argv[1:]
    if what == "receive":
        receive(words)
    elif what == "handoff":
        handoff(words[0], words[1], int(words[2]), *words[3:])
    elif what == "offload":
        offload(*words)
    else:
        sys.exit(__doc__)


main()
