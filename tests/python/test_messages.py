"""Messages that name something of C++ name that of C and of Python there (txn/message_terms.cc)."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NAME = re.compile(r"\b[A-Z]\w+::\w+")
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')

# Names in messages that no program in C or Python meets: they are about several nodes, options that only C++ has, or
# calls that the bindings make themselves.
OF_CPP_ALONE = {
    "Database::Start", "DatabaseOptions::call_timeout", "DatabaseOptions::checkpoint_bytes_per_second",
    "DatabaseOptions::checkpoint_log_multiple", "DatabaseOptions::data_nodes", "DatabaseOptions::log_buffer_bytes",
    "DatabaseOptions::log_preallocate_bytes", "DatabaseOptions::log_segment_bytes", "DatabaseOptions::medium",
    "DatabaseOptions::page_cache_bytes", "DatabaseOptions::precedence_after", "DatabaseOptions::precedence_limit",
    "DatabaseOptions::read_path", "DatabaseOptions::server_threads", "GetRequest::table",
    "LogOptions::large_buffer_bytes", "Placement::Unknown", "Row::member", "SecondaryIndexOptions::placement",
    "TableOptions::placement",
}


def literals(path):
    for line in path.read_text().splitlines():
        if not line.lstrip().startswith(("//", "#include")):
            yield from LITERAL.findall(line)


class MessageTest(unittest.TestCase):

    def test_every_name_of_cpp_has_one_of_c_and_python(self):
        terms = " ".join(literals(ROOT / "txn" / "message_terms.cc"))
        found, composed = set(), set()
        for folder in ("base", "rdma", "index", "log", "txn"):
            for path in sorted((ROOT / folder).rglob("*.cc")) + sorted((ROOT / folder).rglob("*.h")):
                if path.name == "message_terms.cc":
                    continue
                for literal in literals(path):
                    found.update(NAME.findall(literal))
                    composed.update(re.findall(r"\b([A-Z]\w+)::$", literal))
        # The options that options.cc checks in one way: wrong("group_commit", ...).
        checked = re.findall(r'\bwrong\("(\w+)", \w', (ROOT / "txn" / "store" / "options.cc").read_text())
        found |= {f"DatabaseOptions::{option}" for option in checked}
        self.assertIn("DatabaseOptions::create_if_missing", found)
        self.assertIn("DatabaseOptions::group_commit", found)
        for name in sorted(found):
            self.assertTrue(name in terms or name in OF_CPP_ALONE,
                            f"{name}: give it a term, or say that only C++ meets it")
        for name in NAME.findall(terms):
            self.assertTrue(name in found or name.split("::")[0] in composed, f"{name}: no message has it")


if __name__ == "__main__":
    unittest.main()
