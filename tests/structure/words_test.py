#!/usr/bin/env python3
"""Words that docs/architecture.md replaced ("Words", third column) are in no code and no page.

usage: words_test.py ROOT
"""

import pathlib
import re
import sys

FOLDERS = ("base", "rdma", "index", "log", "txn", "tpcc", "cluster", "capi", "cli", "lab", "bench", "ycsb", "python",
           "examples", "tests", "docs")
OTHERS = {"debt": ("tpcc/", "tests/tpcc/"), "calm": ("lab/experiments/",)}  # where the word means something else


def replaced(architecture):
    """The words of the third column."""
    section = architecture.split("\n## Words\n")[1].split("\n## ")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| ")]
    words = [row[3].strip() for row in rows[1:]]
    return section, [word for word in words if word]


def main(root):
    page = root / "docs/architecture.md"
    section, words = replaced(page.read_text())
    assert len(words) > 3, words
    # A word that is written small is in no name and no sentence; one that is written large is no name of its own.
    patterns = {word: re.compile(rf"\b{word}\b" if word[0].isupper() else rf"{word}s?(?![a-z])", re.IGNORECASE
                                 if word[0].islower() else 0) for word in words}
    files = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*"))
             if path.suffix in (".h", ".cc", ".md", ".py", ".txt") and path.name != "words_test.py"]
    assert len(files) > 500, f"only {len(files)} files in {root}"
    wrong = []
    for path in files:
        name = path.relative_to(root).as_posix()
        text = path.read_text(errors="replace")
        if path == page:
            text = text.replace(section, "\n" * section.count("\n"))
        for word, pattern in patterns.items():
            if name.startswith(OTHERS.get(word, ("//",))):
                continue
            wrong += [f"{name}:{text.count(chr(10), 0, match.start()) + 1}: '{match.group()}'; see the words of "
                      "docs/architecture.md" for match in pattern.finditer(text)]
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
