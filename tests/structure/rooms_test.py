#!/usr/bin/env python3
"""The rooms of the engine: a folder is a room, and no two rooms include each other.

usage: rooms_test.py ROOT
"""

import collections
import pathlib
import re
import sys

INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)

# Of txn, from below to above: a room includes only those before it.
TXN = ["txn/" + room for room in ("store", "record", "node", "durable", "path", "peer", "session", "access", "commit",
                                  "run", "schema")] + ["txn"]
# The same of index/shared_leaf, and of log.
SHARED_LEAF = ["index/shared_leaf/" + room for room in ("claim", "leaf", "blocks", "change", "owner")] + ["index/shared_leaf"]
LOG = ["log/" + room for room in ("format", "file", "file/simulated", "manifest", "segment", "checkpoint",
                                  "commit")] + ["log"]

# From below to above, by their top folders.
LAYERS = ["base", "rdma", "index", "log", "txn", "tpcc", "cluster", "capi", "python", "ycsb", "cli", "lab"]


def includes(root):
    """(room, included room) -> one file and what it includes."""
    found = {}
    for layer in LAYERS:
        for path in sorted((root / layer).rglob("*.h")) + sorted((root / layer).rglob("*.cc")):
            room = path.parent.relative_to(root).as_posix()
            for name in INCLUDE.findall(path.read_text()):
                if (root / name).exists():
                    found.setdefault((room, pathlib.PurePath(name).parent.as_posix()),
                                     f"{path.relative_to(root)} includes {name}")
    return found


def main(root):
    edges = {pair: where for pair, where in includes(root).items() if pair[0] != pair[1]}
    assert len(edges) > 50, f"only {len(edges)} includes between rooms were found in {root}"
    wrong = []
    mutual = {tuple(sorted(pair)) for pair in edges if pair[::-1] in edges}
    for pair in sorted(mutual):
        wrong.append(f"{pair[0]} and {pair[1]} include each other: {edges[pair]}; {edges[pair[::-1]]}")
    rank = {room: (rooms[-1], number) for rooms in (TXN, SHARED_LEAF, LOG) for number, room in enumerate(rooms)}
    layer = {name: number for number, name in enumerate(LAYERS)}
    for (room, other), where in sorted(edges.items()):
        if room in rank and other in rank and rank[room][0] == rank[other][0] and rank[room] < rank[other]:
            wrong.append(f"{room} is below {other}: {where}")
        top, other_top = room.split("/")[0], other.split("/")[0]
        if layer[top] < layer.get(other_top, -1) and {top, other_top} != {"index", "log"}:
            wrong.append(f"{top} is below {other_top}: {where}")
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
