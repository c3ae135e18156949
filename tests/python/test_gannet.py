"""The Python package, through what its documentation promises."""

import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy

import gannet


class GannetTest(unittest.TestCase):

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.db = self.open(create=True)

    def tearDown(self):
        self.db.close()
        self.scratch.cleanup()

    def open(self, **options):
        return gannet.open(os.path.join(self.scratch.name, "db"), memory_bytes=256 << 20, **options)


class TableTest(GannetTest):

    def test_describes_itself(self):
        words = self.db.create_table("words", key=str, max_key_bytes=20, payload=8, application="a note")
        self.assertEqual(words.name, "words")
        self.assertIs(words.key, bytes)
        self.assertEqual(words.max_key_bytes, 20)
        self.assertEqual(words.index, "xstore")
        self.assertTrue(words.ordered)
        self.assertEqual(words.payload_bytes, 8)
        self.assertFalse(words.variable_length)
        self.assertEqual(words.application, "a note")
        self.assertIn("words", repr(words))

    def test_is_found_in_the_directory(self):
        self.db.create_table("numbers", index="hash", max_payload=100)
        with self.db.transaction() as t:
            t[self.db.table("numbers"), 7] = b"seven"
        self.db.close()
        self.db = self.open()
        numbers = self.db.table("numbers")
        self.assertIs(numbers.key, int)
        self.assertTrue(numbers.variable_length)
        self.assertEqual([table.name for table in self.db.tables()], ["numbers"])
        with self.db.transaction() as t:
            self.assertEqual(t[numbers, 7], b"seven")

    def test_is_renamed(self):
        table = self.db.create_table("old")
        self.db.rename_table("old", "new")
        self.assertEqual(table.name, "new")
        with self.assertRaises(gannet.NotFound):
            self.db.rename_table("old", "newer")

    def test_is_widened(self):
        table = self.db.create_table("pairs", payload="<u4")
        with self.db.transaction() as t:
            t[table, 1] = numpy.uint32(7)
        self.db.widen_table("pairs", 8)
        pairs = self.db.table("pairs", dtype="<u8")
        with self.db.transaction() as t:
            self.assertEqual(t[pairs, 1], 7)
            t[pairs, 2] = numpy.uint64(1 << 40)
        with self.assertRaises(gannet.InvalidArgument):
            self.db.widen_table("pairs", 4)

    def test_is_arranged(self):
        table = self.db.create_table("words", key=str)
        words = [b"tern", b"auk", b"gannet", b"skua"]
        with self.db.transaction() as t:
            for number, word in enumerate(words):
                t[table, word] = str(number).encode()
        self.db.arrange_table("words")
        with self.db.transaction() as t:
            self.assertEqual([key for key, _ in t.scan(table)], sorted(words))
        with self.assertRaises(gannet.NotFound):
            self.db.arrange_table("birds")

    def test_is_dropped(self):
        table = self.db.create_table("short-lived")
        self.db.drop_table("short-lived")
        self.assertEqual([each.name for each in self.db.tables()], [])
        with self.assertRaisesRegex(gannet.FailedPrecondition, "has been dropped"):
            with self.db.transaction() as t:
                t[table, 1] = b"one"
        with self.assertRaises(gannet.NotFound):
            self.db.drop_table("short-lived")
        self.db.create_table("short-lived")

    def test_errors(self):
        with self.assertRaisesRegex(gannet.NotFound, "no table 'none'"):
            self.db.table("none")
        with self.assertRaisesRegex(gannet.InvalidArgument, "xstore"):
            self.db.create_table("t", index="btree")
        with self.assertRaises(TypeError):
            self.db.create_table("t", key=float)
        self.db.create_table("t", payload=8)
        with self.assertRaises(gannet.AlreadyExists):
            self.db.create_table("t", payload=8)
        with self.assertRaisesRegex(ValueError, "payloads of 8 bytes, but int32 has 4"):
            self.db.table("t", dtype="i4")


class OperationTest(GannetTest):

    def setUp(self):
        super().setUp()
        self.words = self.db.create_table("words", key=str)
        self.counts = self.db.create_table("counts", payload=8)

    def test_reads_and_writes(self):
        with self.db.transaction() as t:
            t.insert(self.words, "one", b"1")
            t[self.words, "two"] = bytearray(b"2")
            t.upsert(self.words, b"two", memoryview(b"II"))
            self.assertEqual(t[self.words, "two"], b"II")
            self.assertEqual(t.get(self.words, "one"), b"1")
            self.assertIsNone(t.get(self.words, "three"))
            self.assertEqual(t.get(self.words, "three", b"?"), b"?")
            self.assertTrue((self.words, "one") in t)
            self.assertFalse(t.exists(self.words, "three"))
            self.assertFalse(t.update_if(self.words, "one", b"I", b"x"))
            self.assertTrue(t.update_if(self.words, "one", b"1", b"I"))
            t.update(self.words, "one", b"")
            self.assertEqual(t[self.words, "one"], b"")
            del t[self.words, "one"]
            self.assertFalse(t.exists(self.words, "one"))

    def test_errors_leave_the_transaction_usable(self):
        with self.db.transaction() as t:
            with self.assertRaisesRegex(KeyError, "table 'words', key 'one'"):
                t[self.words, "one"]
            with self.assertRaisesRegex(gannet.NotFound, '"one"'):
                t.remove(self.words, "one")
            with self.assertRaises(gannet.NotFound):
                t.update(self.words, "one", b"")
            t.insert(self.words, "one", b"1")
            with self.assertRaises(gannet.AlreadyExists) as raised:
                t.insert(self.words, "one", b"1")
            self.assertEqual(raised.exception.code, 6)
            with self.assertRaises(gannet.InvalidArgument):
                t.insert(self.counts, 1, b"four")
            with self.assertRaises(gannet.InvalidArgument):
                t.update(self.counts, 1, b"four")
            with self.assertRaises(gannet.InvalidArgument):
                t.get(self.words, 5)
            with self.assertRaises(gannet.InvalidArgument):
                t.get(self.words, "x" * 65)
            for key in (-1, True, 1.5, None, 1 << 64):
                with self.assertRaises((TypeError, ValueError, OverflowError)):
                    t.get(self.counts, key)
            with self.assertRaises(TypeError):
                t.insert(self.words, "two", "text")
        with self.db.transaction() as t:
            self.assertEqual(t[self.words, "one"], b"1")

    def test_adds(self):
        with self.db.transaction() as t:
            t[self.counts, 1] = struct.pack("<q", 40)
            self.assertEqual(t.add(self.counts, 1, 2), 42)
            self.assertEqual(t.add(self.counts, 1, -43), -1)
            t[self.counts, 2] = struct.pack("<d", 0.5)
            self.assertEqual(t.add(self.counts, 2, 0.25), 0.75)
            with self.assertRaises(gannet.OutOfRange):
                t.add(self.counts, 1, 1, offset=1)
            with self.assertRaises(gannet.NotFound):
                t.add(self.counts, 3, 1)

    def test_keys_of_every_form(self):
        signed = self.db.create_table("signed", max_payload=10)
        with self.db.transaction() as t:
            for number in (3, -5, 0, (1 << 63) - 1, -(1 << 63)):
                t[signed, gannet.signed(number)] = b""
            t[self.words, ("a", 10, -1, 2.5, False)] = b""
            t[self.words, ("a", 9, 1 << 63)] = b""
            t[self.words, ("b\0", b"\1")] = b""
        with self.db.transaction() as t:
            numbers = [gannet.unsigned(key) for key in t.keys(signed)]
            self.assertEqual(numbers, [-(1 << 63), -5, 0, 3, (1 << 63) - 1])
            tuples = [gannet.unpack(key) for key in t.keys(self.words)]
            self.assertEqual(tuples, [(b"a", 9, 1 << 63), (b"a", 10, -1, 2.5, False), (b"b\0", b"\1")])
            self.assertEqual(len(list(t.keys(self.words, prefix=("a",)))), 2)
            self.assertEqual(len(list(t.keys(self.words, prefix=("a", 9)))), 1)
        with self.assertRaises(ValueError):
            gannet.signed(1 << 63)
        with self.assertRaises(gannet.InvalidArgument):
            gannet.unpack(b"\xff")


class ScanTest(GannetTest):

    def setUp(self):
        super().setUp()
        self.letters = self.db.create_table("letters", key=str, payload=1)
        with self.db.transaction() as t:
            for letter in "abcdefghijklmnopqrstuvwxyz":
                t[self.letters, letter] = letter.encode()

    def test_ranges(self):

        def scanned(*args, **kwargs):
            with self.db.transaction() as t:
                rows = list(t.scan(self.letters, *args, **kwargs))
                self.assertTrue(all(key == row for key, row in rows))
                self.assertEqual([key for key, _ in rows], list(t.keys(self.letters, *args, **kwargs)))
                return b"".join(key for key, _ in rows).decode()

        self.assertEqual(scanned(), "abcdefghijklmnopqrstuvwxyz")
        self.assertEqual(scanned("c", "g"), "cdef")
        self.assertEqual(scanned("c", "g", reverse=True), "fedc")
        self.assertEqual(scanned("x"), "xyz")
        self.assertEqual(scanned(stop="c", reverse=True), "ba")
        self.assertEqual(scanned(prefix="q"), "q")
        self.assertEqual(scanned("g", "c"), "")

    def test_sees_changes_of_its_loop(self):
        with self.db.transaction() as t:
            for key, _ in t.scan(self.letters):
                t.remove(self.letters, key)
                if key == b"c":
                    t[self.letters, "cc"] = b"c"
                    del t[self.letters, "d"]
            self.assertEqual(list(t.keys(self.letters)), [])

    def test_cursor(self):
        with self.db.transaction() as t:
            cursor = t.cursor(self.letters, "c", "x")
            self.assertIsNone(cursor.key)
            self.assertTrue(cursor.seek_forward("m1"))
            self.assertEqual((cursor.key, cursor.row), (b"n", b"n"))
            self.assertTrue(cursor.previous())
            self.assertEqual(cursor.key, b"m")
            self.assertTrue(cursor.seek_backward("a1") is False)
            self.assertIsNone(cursor.row)
            with self.assertRaises(gannet.FailedPrecondition):
                cursor.next()
            self.assertTrue(cursor.last())
            self.assertEqual(cursor.key, b"w")
            self.assertFalse(cursor.next())
            self.assertTrue(cursor.first())
            self.assertIsNone(t.cursor(self.letters, keys_only=True).row)
        with self.assertRaises(ValueError):
            cursor.first()  # its transaction has ended
        self.assertIsNone(cursor.key)

    def test_unordered(self):
        table = self.db.create_table("unordered", index="hash")
        with self.assertRaises(gannet.FailedPrecondition):
            with self.db.transaction() as t:
                list(t.scan(table))


class NumpyTest(GannetTest):

    def test_rows_are_scalars(self):
        dtype = numpy.dtype([("x", "<f8"), ("y", "<f8"), ("people", "<i8")])
        cities = self.db.create_table("cities", key=str, payload=dtype)
        with self.db.transaction() as t:
            t[cities, "Oslo"] = numpy.array((10.75, 59.91, 700_000), dtype)
            t[cities, "Bern"] = numpy.array((7.45, 46.95, 134_000), dtype)
        with self.db.transaction() as t:
            self.assertEqual(t[cities, "Oslo"]["people"], 700_000)
            self.assertEqual(t.add(cities, "Oslo", 1, offset=dtype.fields["people"][1]), 700_001)
            keys, rows = t.array(cities)
            self.assertEqual(keys, [b"Bern", b"Oslo"])
            self.assertEqual(rows["people"].tolist(), [134_000, 700_001])
            keys, rows = t.array(self.db.table("cities"), reverse=True)
            self.assertEqual(rows.shape, (2, 24))
            self.assertEqual(keys, [b"Oslo", b"Bern"])
            keys, rows = t.array(cities, prefix="X")
            self.assertEqual((keys, len(rows)), ([], 0))
        with self.db.transaction() as t:
            with self.assertRaises(ValueError):
                t.array(self.db.create_table("variable"))


class RectangleTest(GannetTest):

    def test_search_and_nearest(self):
        taxis = self.db.create_table("taxis", index="catfish", payload=8, key=bytes)
        with self.db.transaction() as t:
            for i in range(5):
                t[taxis, gannet.pack_rectangle((i, i, i, i), i)] = struct.pack("<q", i)
            found = t.search(taxis, (0.5, 0.5, 2.5, 9))
            self.assertEqual([gannet.unpack_rectangle(key)[1] for key, _ in found], [1, 2])
            (key, row), = t.nearest(taxis, 3.9, 3.9)
            self.assertEqual(gannet.unpack_rectangle(key), ((4, 4, 4, 4), 4))
            self.assertEqual(row, struct.pack("<q", 4))
            with self.assertRaises(gannet.InvalidArgument):
                t.search(taxis, (1, 0, 0, 0))
        with self.assertRaises(gannet.InvalidArgument):
            gannet.pack_rectangle((1, 0, 0, 0), 1)


class TransactionTest(GannetTest):

    def setUp(self):
        super().setUp()
        self.rows = self.db.create_table("rows", payload=8)
        with self.db.transaction() as t:
            t[self.rows, 1] = struct.pack("<q", 0)

    def row(self):
        with self.db.transaction() as t:
            return struct.unpack("<q", t[self.rows, 1])[0]

    def test_an_exception_rolls_back(self):
        with self.assertRaises(RuntimeError):
            with self.db.transaction() as t:
                t.add(self.rows, 1, 5)
                raise RuntimeError
        self.assertEqual(self.row(), 0)

        def fail(t):
            t.add(self.rows, 1, 5)
            raise LookupError("mine")

        with self.assertRaisesRegex(LookupError, "mine"):
            self.db.run(fail)
        self.assertEqual(self.row(), 0)

    def test_a_conflict_is_raised_or_run_again(self):
        with self.assertRaises(gannet.Aborted):
            with self.db.transaction() as t:
                t.add(self.rows, 1, 1)
                self.db.run(lambda other: other.add(self.rows, 1, 10))
        self.assertEqual(self.row(), 10)

        attempts = []

        @self.db.transactional
        def add_in_conflict(t, delta):
            """Adds."""
            result = t.add(self.rows, 1, delta)
            attempts.append(result)
            if len(attempts) == 1:
                self.db.run(lambda other: other.add(self.rows, 1, 100))
            return result

        self.assertEqual(add_in_conflict(1), 111)
        self.assertEqual(attempts, [11, 111])
        self.assertEqual(add_in_conflict.__doc__, "Adds.")
        self.assertEqual(self.row(), 111)

    def test_an_exception_of_a_stale_read_is_not_believed(self):
        attempts = []

        def fail_if_small(t):
            number = struct.unpack("<q", t[self.rows, 1])[0]
            attempts.append(number)
            if number == 0:
                self.db.run(lambda other: other.add(self.rows, 1, 7))
                raise ValueError("small")
            return number

        self.assertEqual(self.db.run(fail_if_small), 7)
        self.assertEqual(attempts, [0, 7])

    def test_by_hand(self):
        with self.db.begin() as t:
            t.add(self.rows, 1, 1)
            t.rollback()
            t.add(self.rows, 1, 2)
            t.validate()
            t.commit()
            with self.assertRaises(gannet.FailedPrecondition):
                t.get(self.rows, 1)
            t.rollback()
            t.add(self.rows, 1, 4)
        self.assertEqual(self.row(), 2)
        with self.assertRaises(ValueError):
            t.get(self.rows, 1)

    def test_close_refuses_while_one_is_open(self):
        with self.db.transaction():
            with self.assertRaises(gannet.FailedPrecondition):
                self.db.close()

    def test_tables_of_another_database_are_refused(self):
        with gannet.open(None, memory_bytes=64 << 20) as other:
            table = other.create_table("rows", payload=8)
            with self.db.transaction() as t:
                with self.assertRaisesRegex(ValueError, "another database"):
                    t.get(table, 1)

    def test_threads_share_a_database(self):
        errors = []

        def count():
            try:
                for _ in range(100):
                    self.db.run(lambda t: t.add(self.rows, 1, 1))
            except Exception as error:  # pylint: disable=broad-except
                errors.append(error)

        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        self.assertEqual(self.row(), 400)


class OpenTest(unittest.TestCase):

    def test_errors(self):
        with tempfile.TemporaryDirectory() as scratch:
            with self.assertRaises(gannet.NotFound):
                gannet.open(os.path.join(scratch, "none"))
            with self.assertRaises(TypeError):
                gannet.open(None, memory=5)
            with self.assertRaises(ValueError):
                gannet.open(None, durability="always")
            with self.assertRaises(gannet.InvalidArgument):
                gannet.open(None, open_transactions=0)

    def test_durability(self):
        with tempfile.TemporaryDirectory() as scratch:
            with gannet.open(scratch + "/db", create=True, durability="async", memory_bytes=64 << 20) as db:
                rows = db.create_table("rows")
                db.run(lambda t: t.insert(rows, 1, b"one"))
                db.check_log()
                self.assertGreater(db.logged_epoch(), 0)
                self.assertGreaterEqual(db.durable_epoch(), 0)
                db.checkpoint()
                db.backup(scratch + "/copy")
                with self.assertRaises(gannet.InvalidArgument):
                    db.backup(scratch + "/copy")
            with gannet.open(scratch + "/copy", memory_bytes=64 << 20) as db:
                self.assertEqual(db.run(lambda t: t[db.table("rows"), 1]), b"one")
            with gannet.open(scratch + "/db", memory_bytes=64 << 20) as db:
                self.assertEqual(db.run(lambda t: t[db.table("rows"), 1]), b"one")

    def test_a_directory_is_a_str_bytes_or_a_path(self):
        with tempfile.TemporaryDirectory() as scratch:
            name = os.path.join(scratch, "\udcff")  # a name that is no UTF-8, as os.listdir gives it
            with gannet.open(os.fsencode(name), create=True, memory_bytes=64 << 20) as db:
                db.backup(pathlib.Path(scratch, "copy"))
            gannet.open(name, memory_bytes=64 << 20).close()
            gannet.open(pathlib.Path(scratch, "copy"), memory_bytes=64 << 20).close()
            with self.assertRaises(TypeError):
                gannet.open(5, create=True)
            self.assertEqual(sorted(os.listdir(scratch)), ["copy", "\udcff"])

    def test_a_str_that_is_no_utf8_is_no_key(self):
        with gannet.open(memory_bytes=64 << 20) as db:
            words = db.create_table("words", key=str)
            with db.transaction() as t:
                for key in ["\ud800", ("a", "\ud800")]:
                    with self.assertRaises(UnicodeEncodeError):
                        t.upsert(words, key, b"")

    def test_metrics(self):
        with tempfile.TemporaryDirectory() as scratch:
            with gannet.open(scratch + "/db", create=True, memory_bytes=64 << 20) as db:
                rows = db.create_table("rows")
                db.run(lambda t: t.insert(rows, 1, b"one"))
                self.assertIn("\ngannet_log_changes_total 1\n", db.metrics())

    def test_a_killed_process_loses_no_commit(self):
        program = """
import os, sys, gannet
db = gannet.open(sys.argv[1], create=True, memory_bytes=64 << 20)
rows = db.create_table("rows")
for i in range(50):
    db.run(lambda t: t.insert(rows, i, b"row"))
print("committed", flush=True)
os.kill(os.getpid(), 9)
"""
        with tempfile.TemporaryDirectory() as scratch:
            done = subprocess.run([sys.executable, "-c", program, scratch + "/db"], stdout=subprocess.PIPE, check=False)
            self.assertEqual(done.stdout, b"committed\n")
            with gannet.open(scratch + "/db", memory_bytes=64 << 20) as db:
                with db.transaction() as t:
                    self.assertEqual(list(t.keys(db.table("rows"))), list(range(50)))


class EventTest(unittest.TestCase):

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.directory = self.scratch.name + "/db"

    def tearDown(self):
        self.scratch.cleanup()

    def run_program(self, program):
        done = subprocess.run([sys.executable, "-c", program, self.directory], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False, timeout=100)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout.decode()

    def test_tells_of_recovery(self):
        events = []
        note = lambda level, text: events.append((level, text))
        gannet.open(self.directory, create=True, memory_bytes=64 << 20, on_event=note).close()
        self.assertEqual(events, [])
        gannet.open(self.directory, memory_bytes=64 << 20, on_event=note).close()
        self.assertEqual(len(events), 1)
        self.assertEqual(events[0][0], "info")
        self.assertIn(self.directory + ": recovered ", events[0][1])

    def test_must_be_a_function(self):
        with self.assertRaises(TypeError):
            gannet.open(None, on_event=7)
        gannet.open(None, on_event=None, memory_bytes=64 << 20).close()

    def test_the_function_is_given_up_with_the_database(self):
        note = lambda level, text: None
        before = sys.getrefcount(note)
        db = gannet.open(None, on_event=note, memory_bytes=64 << 20)
        self.assertGreater(sys.getrefcount(note), before)
        db.close()
        del db
        self.assertEqual(sys.getrefcount(note), before)
        with self.assertRaises(gannet.NotFound):
            gannet.open(self.directory, on_event=note)
        self.assertEqual(sys.getrefcount(note), before)

    def test_another_thread_tells_of_checkpoints(self):
        self.assertIn("a checkpoint was taken", self.run_program("""
import sys, threading, gannet
told = threading.Event()
def note(level, text):
    if threading.current_thread() is not threading.main_thread():
        print(level, text)
        told.set()
with gannet.open(sys.argv[1], create=True, memory_bytes=64 << 20, checkpoint_every=0.001, on_event=note):
    assert told.wait(60)
"""))

    def test_an_exception_goes_to_the_hook(self):
        gannet.open(self.directory, create=True, memory_bytes=64 << 20).close()
        seen = []
        before = sys.unraisablehook
        sys.unraisablehook = lambda unraisable: seen.append((str(unraisable.exc_value), unraisable.object))
        try:

            def fail(level, text):
                raise ValueError("no")

            with gannet.open(self.directory, memory_bytes=64 << 20, on_event=fail) as db:
                db.create_table("rows")  # it works nevertheless
        finally:
            sys.unraisablehook = before
        self.assertEqual([text for text, _ in seen], ["no"])
        self.assertIn("on_event", seen[0][1])

    def test_python_exits_while_the_engine_tells(self):
        # The database is not closed, it tells of a checkpoint all the time, and the function is slow. Exit functions run
        # in the reverse order of their registration.
        for _ in range(3):
            self.run_program("""
import atexit, os, sys, threading, time
calls = []
def last():
    before = len(calls)
    time.sleep(0.2)
    if len(calls) != before:
        os._exit(3)
atexit.register(last)
import gannet
told = threading.Event()
def note(level, text):
    calls.append(text)
    told.set()
    time.sleep(0.02)
db = gannet.open(sys.argv[1], create=True, memory_bytes=64 << 20, checkpoint_every=0.001, on_event=note)
assert told.wait(60)
""")

    def test_a_database_that_nobody_closes_goes_while_it_tells(self):
        self.run_program("""
import sys, threading, gannet
for _ in range(5):
    told = threading.Event()
    def note(level, text, told=told):
        told.set()
    db = gannet.open(sys.argv[1], create=True, memory_bytes=64 << 20, checkpoint_every=0.001, on_event=note)
    assert told.wait(60)
    del db  # its threads may wait for the interpreter's lock now
""")


if __name__ == "__main__":
    unittest.main()
