#!/usr/bin/env python3
"""Reads a data directory of one or more nodes as docs/log_format.md describes it, and knows nothing else of Gannet.

usage: read_directory.py DIR

Prints a line for each row, sorted: node, name of the table, key and payload in hex. Reads versions 3 to 5 of the log.
Checks what the page asks of an undamaged directory, and ends with an error where it does not hold.
"""

import json
import os
import struct
import sys

BLOCK = 4096


class Damage(Exception):
    pass


def check(condition, what):
    if not condition:
        raise Damage(what)


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = crc_table()


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def number(data, at, size):
    return int.from_bytes(data[at:at + size], "little")


def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


# --- Manifest ---


def read_manifest(directory):
    data = read(directory, "MANIFEST")
    end = data.index(b"\ngannet-crc32c ")
    # The sizes tell whether the newline before the line belongs to the JSON.
    _, crc, size = data[end + 1:data.index(b"\0", end) if b"\0" in data[end:] else len(data)].split()
    text = data[:int(size)]
    check(crc32c(text) == int(crc, 16), f"{directory}: the manifest's checksum")
    manifest = json.loads(text)
    check(manifest["gannet_manifest"] in range(1, 6), "the version of the manifest")
    return manifest


# --- The log ---


class Segment:
    """Its header, and its batches that are not void."""

    def __init__(self, directory, name):
        self.data = read(directory, name)
        head = self.data[:BLOCK]
        self.path = os.path.join(directory, name)
        self.number = int(name[4:], 16)
        self.torn = len(head) < BLOCK or number(head, 0, 8) == 0 or number(head, 80, 8) == 0
        if self.torn:
            return
        check(head[:8] == b"GNNTLOG1" and number(head, 8, 4) == crc32c(head[12:]), self.path + ": header")
        self.version = number(head, 12, 4)
        check(self.version in (3, 4, 5), self.path + ": version")
        self.bytes, self.run, self.first_batch, self.takeover, self.recovered, self.closed = struct.unpack_from(
            "<6Q", head, 24)
        check(number(head, 16, 8) == self.number and head[80:88] == b"GNTLOEND", self.path + ": header")
        self.node, self.nodes, flags = struct.unpack_from("<HHI", head, 72)
        self.reused = flags == 1
        self.database = head[88:104].hex() if self.version >= 4 else ""
        self.run_identity = head[112:128] if self.version >= 5 else bytes(16)
        self.run_before = head[128:144] if self.version >= 5 else bytes(16)
        self.torn = len(self.data) < self.bytes

    def batches(self, end_batch, end_offset):
        """(closed epoch, transactions) of each, up to where the next segment takes over, or to the end of the log."""
        at, expected = BLOCK, self.first_batch
        while at + BLOCK <= len(self.data) and (end_offset is None or at < end_offset) and expected != end_batch:
            head = self.data[at:at + 64]
            body_bytes, count = struct.unpack_from("<II", head, 40)
            valid = head[4:8] == b"GBT1" and number(head, 0, 4) == crc32c(head[4:]) and number(
                head, 8, 8) == expected and number(head, 16, 8) == self.number
            transactions = read_transactions(self.data[at + 64:at + 64 + body_bytes], count) if valid else None
            if transactions is None:
                check(end_offset is None, f"{self.path} at {at}: a batch before the next segment is invalid")
                return
            yield number(head, 24, 8), transactions
            at += (64 + body_bytes + BLOCK - 1) // BLOCK * BLOCK
            expected += 1
        check(end_offset is None or (at == end_offset and expected == end_batch), self.path + ": takeover")


def read_transactions(body, count):
    """Nothing if one is invalid."""
    transactions = []
    at = 0
    for _ in range(count):
        if at + 32 > len(body):
            return None
        crc, size, epoch, identity, changes, part = struct.unpack_from("<IIQQII", body, at)
        if size < 32 or at + size > len(body) or crc32c(body[at + 4:at + size]) != crc:
            return None
        transactions.append((epoch, identity, part, read_changes(body[at + 32:at + size], changes)))
        at += size
    return transactions


def read_changes(data, count):
    """(table, key, version, payload or None)"""
    changes = []
    at = 0

    def take(size):
        nonlocal at
        at += size
        return data[at - size:at]

    for _ in range(count):
        control = number(take(2), 0, 2)
        check(control >> 12 == 0, "a control word")
        table = number(take(2 if control >> 10 & 1 else 1), 0, 2)
        payload_bytes = number(take((0, 1, 2, 4)[control >> 8 & 3]), 0, 4)
        version = number(take(control & 15), 0, 8)
        code = control >> 4 & 15
        if code <= 8:
            key = number(take(code), 0, 8).to_bytes(8, "big")
        else:
            key = take(number(take(code - 8), 0, 2))
        payload = take(payload_bytes)
        changes.append((table, key, version, None if control >> 11 & 1 else payload))
    return changes


class Log:
    """All segments of a node that are there."""

    def __init__(self, directory, manifest):
        names = sorted(name for name in os.listdir(directory) if name.startswith("log-"))
        self.segments = [Segment(directory, name) for name in names]
        self.directory = directory
        for before, segment in zip(self.segments, self.segments[1:]):
            check(before.number + 1 == segment.number, directory + ": a segment is missing")
        self.valid = [segment for segment in self.segments if not segment.torn]
        check(self.valid or not manifest["started"], directory + ": the log is missing")
        for before, segment in zip(self.valid, self.valid[1:]):
            self.check_next(before, segment)
        for segment in self.valid:
            check((segment.node, segment.nodes) == (manifest["node"], manifest["num_nodes"]), segment.path + ": node")
            check(segment.database in ("", "0" * 32, manifest["database"]), segment.path + ": database")
        run = manifest.get("run", "")
        check(not run or any(segment.run_identity.hex() == run for segment in self.valid),
              directory + ": the run of the manifest")
        self.read_batches()

    @staticmethod
    def check_next(before, segment):
        if before.run == segment.run:
            same = before.run_identity == segment.run_identity and before.run_before == segment.run_before
        else:
            same = before.run < segment.run and before.run_identity == segment.run_before
        check(same, segment.path + ": it does not continue the run before")

    def read_batches(self):
        """self.transactions: (segment, epoch, id, part, changes), without those that are void."""
        self.closed = 0
        self.last_closed = None  # the first segment of the last run that closed an epoch
        begin = None  # of the run
        found = []
        for i, segment in enumerate(self.valid):
            end_batch, end_offset = None, None
            if i + 1 < len(self.valid):
                following = self.valid[i + 1]
                end_batch = following.first_batch
                # Behind a segment that was never begun the offset is of that one.
                adjacent = self.segments[self.segments.index(following) - 1] is segment
                end_offset = following.takeover if adjacent else len(segment.data)
            if begin is None or segment.run != begin.run:
                if begin is not None and segment.recovered > begin.recovered:
                    self.last_closed = begin
                begin = segment
                self.closed = segment.recovered
            self.closed = max(self.closed, segment.closed)
            for closed, transactions in segment.batches(end_batch, end_offset):
                self.closed = max(self.closed, closed)
                found += [(segment, *transaction) for transaction in transactions]
        if begin is not None and self.closed > begin.recovered:
            self.last_closed = begin
        self.transactions = [
            one for one in found
            if all(one[1] <= later.recovered for later in self.valid if later.run > one[0].run)
        ]

    def check_begins_before(self, epoch):
        if self.valid:
            check(self.segments[0].torn or self.segments[0].closed < max(epoch, 1), self.directory + ": it begins too late")


# --- Checkpoints ---


def read_checkpoint_file(path, checkpoint, file):
    """(key, version, payload) of each record."""
    data = read(path, file["name"])
    check(len(data) == file["bytes"], file["name"] + ": length")
    head = data[:BLOCK]
    check(head[:8] == b"GNNTCKP1" and number(head, 8, 4) == crc32c(head[12:]), file["name"] + ": header")
    check(number(head, 16, 8) == checkpoint["id"] and number(head, 24, 2) == file["table"], file["name"] + ": header")
    at = BLOCK
    records = []
    crcs = b""
    while True:
        crc, magic, body_bytes, count = struct.unpack_from("<I4sII", data, at)
        body = data[at + 16:at + 16 + body_bytes]
        check(magic == b"GCB1" and crc == crc32c(data[at + 4:at + 16 + body_bytes]), f"{file['name']} at {at}")
        crcs += data[at:at + 4]
        if count == 0:
            break
        inside = 0
        for _ in range(count):
            key_bytes, table, payload_bytes, _, version = struct.unpack_from("<HHIQQ", body, inside)
            check(table == file["table"], file["name"] + ": a record of another table")
            key_at = inside + 24
            payload_at = key_at + (key_bytes + 7) // 8 * 8
            records.append((body[key_at:key_at + key_bytes], version, body[payload_at:payload_at + payload_bytes]))
            inside = payload_at + (payload_bytes + 7) // 8 * 8
        at += (16 + body_bytes + BLOCK - 1) // BLOCK * BLOCK
    check(crc32c(crcs) == file["crc"] and len(records) == file["records"], file["name"] + ": content")
    return records


# --- The database ---


def check_together(logs):
    for log in logs:
        last = log.last_closed
        if last is None:
            continue
        for other in logs:
            if any(last.run_identity):
                has = any(segment.run_identity == last.run_identity for segment in other.valid)
            else:
                has = bool(other.valid) and other.valid[-1].recovered >= last.recovered
            check(has, f"{other.directory} lacks run {last.run} of {log.directory}")


def tables_of(manifests):
    generation = max(manifest.get("catalog_generation", 0) for manifest in manifests)
    tables = {}
    for manifest in manifests:
        if manifest.get("catalog_generation", 0) == generation:
            tables.update({table["id"]: table for table in manifest["tables"]})
    return tables


def rows_of(node, manifest, logs, recovered, tables):
    checkpoint = {"begin_epoch": 0, "end_epoch": 0, "first_segment": 0, "files": []}
    if manifest["checkpoints"]:
        checkpoint = manifest["checkpoints"][0]
    check(checkpoint["end_epoch"] <= recovered, "the logs end before the checkpoint")
    decided = set()
    for i, log in enumerate(logs):
        if i != node:
            log.check_begins_before(checkpoint["begin_epoch"])
        decided |= {(epoch, identity) for _, epoch, identity, part, _ in log.transactions if part == 2}
    changes = {}
    for segment, epoch, identity, part, some in logs[node].transactions:
        if segment.number < checkpoint["first_segment"] or not checkpoint["begin_epoch"] <= epoch <= recovered:
            continue
        if part == 1 and (epoch, identity) not in decided:
            continue
        for table, key, version, payload in some:
            if table not in tables:
                continue  # it was dropped
            if (epoch, version) > changes.get((table, key), (-1, -1))[:2]:
                changes[table, key] = (epoch, version, payload)
    rows = {}
    for file in checkpoint["files"]:
        if file["table"] not in tables:
            continue
        path = os.path.join(manifest["path"], "checkpoint-%016x" % checkpoint["id"])
        for key, version, payload in read_checkpoint_file(path, checkpoint, file):
            change = changes.get((file["table"], key))
            if change is not None and change[0] <= checkpoint["end_epoch"] and change[1] < version:
                del changes[file["table"], key]
            rows[file["table"], key] = payload
    for place, (_, _, payload) in changes.items():
        rows.pop(place, None)
        if payload is not None:
            rows[place] = payload
    return rows


def main(directory):
    parts = [directory]
    if not os.path.exists(os.path.join(directory, "MANIFEST")):
        nodes = sum(name.startswith("node-") for name in os.listdir(directory))
        parts = [os.path.join(directory, f"node-{node}") for node in range(nodes)]
    manifests = [read_manifest(part) for part in parts]
    for node, manifest in enumerate(manifests):
        manifest["path"] = parts[node]
        check((manifest["node"], manifest["num_nodes"]) == (node, len(parts)), parts[node] + ": node")
        check(manifest["database"] == manifests[0]["database"], parts[node] + ": database")
    logs = [Log(part, manifest) for part, manifest in zip(parts, manifests)]
    check_together(logs)
    recovered = min(log.closed for log in logs)
    tables = tables_of(manifests)
    lines = []
    for node, manifest in enumerate(manifests):
        for (table, key), payload in rows_of(node, manifest, logs, recovered, tables).items():
            lines.append(f"{node} {tables[table]['name']} {key.hex()} {payload.hex()}")
    for line in sorted(lines):
        print(line)


if __name__ == "__main__":
    main(sys.argv[1])
