#!/usr/bin/env python3
"""The classes of a transaction's reads and commit: each has one purpose, so none is large, and their headers include
each other in one direction. Database has what a program needs.

usage: classes_test.py ROOT
"""

import pathlib
import re
import sys

ROOMS = ("txn/access", "txn/commit")
MOST_FUNCTIONS = 40
MOST_LINES = 500  # over all files of a class
MOST_FUNCTIONS_OF_DATABASE = 49

TYPE = re.compile(r"\b(?:class|struct)\s+(?:\[\[[^]]*\]\]\s*)?(\w+)(?:\s+final)?\s*(?::[^:].*)?$", re.DOTALL)
NO_FUNCTION = re.compile(r"^\s*(?:template\s*<[^>]*>\s*)?(?:using|friend|static_assert|typedef|enum)\b")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def code_of(text):
    """The text without comments, strings, characters and directives."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', '""', text)
    return re.sub(r"^\s*#[^\n]*", " ", text, flags=re.MULTILINE)


def end_of(code, begin):
    """The place behind the brace that closes the one at `begin`."""
    depth = 0
    for i in range(begin, len(code)):
        depth += {"{": 1, "}": -1}.get(code[i], 0)
        if depth == 0:
            return i + 1
    raise AssertionError("a brace is not closed")


def functions_of(body):
    """The number of member functions that a class declares, with those of the classes within it."""
    count = 0
    begin = at = 0
    while at < len(body):
        if body[at] == "(":  # braces in an argument are none of a body
            depth = 0
            while True:
                depth += {"(": 1, ")": -1}.get(body[at], 0)
                at += 1
                if depth == 0:
                    break
            continue
        if body[at] not in ";{":
            at += 1
            continue
        statement = re.sub(r"\b(?:public|protected|private)\s*:", " ", body[begin:at]).strip()
        is_function = "(" in statement and not NO_FUNCTION.match(statement)
        if body[at] == ";":
            count += is_function
            at += 1
            begin = at
            continue
        end = end_of(body, at)
        if is_function:
            count += 1
            begin = end
        elif TYPE.search(statement) and "enum" not in statement:
            count += functions_of(body[at + 1:end - 1])
            begin = end
        # Otherwise it is the initialiser of a member, or an enum: the statement goes on.
        at = end
    return count


def classes_of(code):
    """Yields the name and the body of each class that is not in another one."""
    at = 0
    while (found := re.compile(r"[;{}]").search(code, at)) is not None:
        opening = found.start()
        named = TYPE.search(code[at:opening])
        if code[opening] == "{" and named and "enum" not in code[at:opening]:
            end = end_of(code, opening)
            yield named.group(1), code[opening + 1:end - 1]
            at = end
        else:
            at = opening + 1


def cycle_of(includes):
    """A list of headers, each of which includes the next one and the last the first; empty if there is none."""
    done = set()

    def visit(name, path):
        if name in path:
            return path[path.index(name):]
        if name in done:
            return []
        for other in includes[name]:
            if cycle := visit(other, path + [name]):
                return cycle
        done.add(name)
        return []

    for name in includes:
        if cycle := visit(name, []):
            return cycle
    return []


def main(root):
    wrong = []
    sizes = {}
    includes = {}
    for room in ROOMS:
        texts = {path: path.read_text() for path in sorted((root / room).glob("*"))}
        for path, text in texts.items():
            if path.suffix != ".h":
                continue
            includes[path.relative_to(root).as_posix()] = [n for n in INCLUDE.findall(text) if n.startswith(ROOMS)]
            for name, body in classes_of(code_of(text)):
                # A class has the header that defines it, and each source that defines a member.
                member = re.compile(rf"\b{name}::~?\w+\(|\b{name}::operator")
                files = [path] + [p for p, t in texts.items() if p.suffix == ".cc" and member.search(code_of(t))
                                  and f'#include "{room}/{path.name}"' in t]
                sizes[name] = (functions_of(body), sum(texts[p].count("\n") for p in files))
    # What the test reads is what it expects: otherwise it could not fail.
    assert len(sizes) >= 20, f"only {len(sizes)} classes were found in {ROOMS}"
    assert sum(functions for functions, _ in sizes.values()) >= 200, sizes
    for name, (functions, lines) in sorted(sizes.items()):
        print(f"{name}: {functions} functions, {lines} lines")
        if functions > MOST_FUNCTIONS:
            wrong.append(f"{name} has {functions} functions, at most {MOST_FUNCTIONS}")
        if lines > MOST_LINES:
            wrong.append(f"{name} has {lines} lines over its files, at most {MOST_LINES}")
    database = dict(classes_of(code_of((root / "txn/database.h").read_text())))["Database"]
    if (functions := functions_of(database)) > MOST_FUNCTIONS_OF_DATABASE:
        wrong.append(f"Database has {functions} functions, at most {MOST_FUNCTIONS_OF_DATABASE}")
    if cycle := cycle_of({name: [n for n in others if n in includes] for name, others in includes.items()}):
        wrong.append("these headers include each other: " + ", ".join(cycle))
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
