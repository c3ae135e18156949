"""The Python package, through what its documentation promises."""

import multiprocessing
import os
import pathlib
import pickle
import signal
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
        self.assertIs(words.key, str)
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

    def test_numbers_of_numpy_are_keys(self):
        numbers = self.db.create_table("numbers", payload=1)
        pairs = self.db.create_table("pairs", key=(int, float), payload=1)
        with self.db.transaction() as t:
            t[numbers, numpy.int64(5)] = b"a"
            t[pairs, (numpy.int32(5), numpy.float32(1.5))] = b"b"
            self.assertEqual(t[numbers, 5], b"a")
            self.assertEqual(t[pairs, (5, 1.5)], b"b")

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
            with self.assertRaisesRegex(ValueError, "a row has 8 bytes, and the dtype 4"):
                list(t.scan(table))
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
            self.assertEqual([key.encode() for key, _ in t.scan(table)], sorted(words))
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
        with self.assertRaisesRegex(ValueError, "payloads of 8 bytes, but int32 has 4"):
            self.db.table("t", dtype="i4")

    def test_is_created_twice_if_the_definitions_agree(self):
        dtype = numpy.dtype([("x", "<i4"), ("y", "<i4")])
        first = self.db.create_table("points", key=str, max_key_bytes=9, payload=dtype)
        again = self.db.create_table("points", key=str, max_key_bytes=9, payload=dtype)
        with self.db.transaction() as t:
            t[first, "a"] = (1, 2)
            self.assertEqual(t[again, "a"]["y"], 2)
        self.db.create_table("numbers", payload=8)
        self.db.create_table("numbers", payload=8, expected_rows=7)
        for option, differs in (("key", {"key": int}), ("max_key_bytes", {"max_key_bytes": 8}),
                                ("index", {"index": "hash"}), ("payload", {"payload": 7}),
                                ("payload", {"payload": None, "max_payload": 8})):
            with self.assertRaisesRegex(gannet.InvalidArgument, f"table 'points' exists with another {option}: "):
                self.db.create_table("points", **{"key": str, "max_key_bytes": 9, "payload": dtype, **differs})

    def test_a_wrong_argument_is_named(self):
        create = self.db.create_table
        for name, call in (
                ("name", lambda: create(5)), ("key", lambda: create("t", key=[str])),
                ("key", lambda: create("t", key=(str, list))), ("index", lambda: create("t", index=5)),
                ("max_key_bytes", lambda: create("t", key=str, max_key_bytes="8")),
                ("max_payload", lambda: create("t", max_payload=1.5)),
                ("application", lambda: create("t", application=5)),
                ("expected_rows", lambda: create("t", expected_rows=None)), ("name", lambda: self.db.table(5)),
                ("key", lambda: self.db.table(create("numbers").name, key=str))):
            with self.assertRaisesRegex(TypeError, f"^{name} is "):
                call()
        with self.assertRaisesRegex(ValueError, "^max_payload is -1"):
            create("t", max_payload=-1)

    def test_gives_keys_back_in_their_form(self):
        for form, keys, row in ((str, ["Bern", "Z\u00fcrich"], b""), (bytes, [b"a", b"\xff"], b""),
                                (tuple, [("a", 1), ("b", -1.5, True)], b""),
                                ((str, int), [("a", 1), ("a", 1 << 63)], b""),
                                ((bytes, str), [(b"a", "b"), (b"\xff", "c")], b""), (int, [1, 2], b"")):
            table = self.db.create_table(str(form), key=form, max_payload=8)
            self.assertEqual(table.key, form)
            with self.db.transaction() as t:
                for key in keys:
                    t[table, key] = row
                self.assertEqual(list(t.keys(table)), keys)
                self.assertEqual(list(t.scan(table)), [(key, row) for key in keys])
                cursor = t.cursor(table)
                cursor.first()
                self.assertEqual(cursor.key, keys[0])
            found = self.db.table(str(form), key=form)
            with self.db.transaction() as t:
                self.assertEqual(list(t.keys(found)), keys)
                plain = self.db.table(str(form), key=int if form is int else bytes)
                self.assertIsInstance(next(t.keys(plain)), plain.key)
        words = self.db.table(str(str), key=str)
        with self.db.transaction() as t:
            t[words, b"\xff"] = b""  # no text
            self.assertEqual(list(t.keys(words))[-1], b"\xff")


    def test_the_directory_keeps_the_form_of_keys(self):
        forms = {"text": str, "plain": bytes, "pairs": (str, int), "tuples": tuple, "signed": gannet.signed,
                 "numbers": int}
        for name, form in forms.items():
            self.db.create_table(name, key=form, max_payload=8)
        with self.db.transaction() as t:
            t[self.db.table("pairs"), ("a", 1)] = b""
            t[self.db.table("signed"), -5] = b""
        self.db.close()
        self.db = self.open()
        found = {table.name: table.key for table in self.db.tables()}
        self.assertEqual(found, {**forms, "pairs": tuple})
        with self.db.transaction() as t:
            self.assertEqual(list(t.keys(self.db.table("pairs"))), [("a", 1)])
            self.assertEqual(list(t.keys(self.db.table("signed"))), [-5])
            self.assertEqual(list(t.keys(self.db.table("signed", key=int))), [gannet.signed(-5)])
            with self.assertRaisesRegex(KeyError, "table 'signed', key -6"):
                t[self.db.table("signed"), -6]
        with self.assertRaisesRegex(gannet.InvalidArgument, "table 'tuples' in the directory is one with keys of the "
                                                            "form tuple, and the program creates it as one with keys "
                                                            "of the form text"):
            self.db.create_table("tuples", key=str, max_payload=8)
        for _ in range(2):
            self.assertIs(self.db.create_table("tuples", key=bytes, max_payload=8).key, bytes)
        with self.assertRaisesRegex(gannet.InvalidArgument, "table 'tuples' exists with another key: tuple, not str"):
            self.db.create_table("tuples", key=str, max_payload=8)
        self.assertEqual(self.db.create_table("tuples", key=(str, int), max_payload=8).key, (str, int))

    # What a directory of an earlier program has, or one of a program in C++ that said nothing.
    def test_a_form_that_the_directory_has_not_is_noted(self):
        self.db.create_table("words", key=bytes)
        self.db.close()
        self.db = self.open()
        self.assertIs(self.db.create_table("words", key=str).key, str)
        self.db.close()
        self.db = self.open()
        self.assertIs(self.db.table("words").key, str)

    def test_signed_keys_are_numbers(self):
        table = self.db.create_table("signed", key=gannet.signed, max_payload=20)
        self.assertIs(table.key, gannet.signed)
        self.assertIn("of signed keys", repr(table))
        least, most = -(1 << 63), (1 << 63) - 1
        with self.db.transaction() as t:
            for number in (3, -5, 0, most, least):
                t[table, number] = b"%d" % number
            self.assertEqual(list(t.keys(table)), [least, -5, 0, 3, most])
            self.assertEqual(list(t.scan(table, -5, 3)), [(-5, b"-5"), (0, b"0")])
            self.assertTrue(t.exists(table, -5))
            t.update(table, -5, b"")
            del t[table, -5]
            self.assertIsNone(t.get(table, -5))
            cursor = t.cursor(table)
            self.assertTrue(cursor.seek_forward(-4))
            self.assertEqual(cursor.key, 0)
            for key in (least - 1, most + 1):
                with self.assertRaisesRegex(ValueError, "signed key"):
                    t.get(table, key)
        with self.assertRaisesRegex(TypeError, "'signed' has integer keys"):
            self.db.table("signed", key=str)


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
            for key in (-1, 1 << 64):
                with self.assertRaises((ValueError, OverflowError)):
                    t.get(self.counts, key)
            for key in (True, 1.5, None):
                with self.assertRaisesRegex(TypeError, f"^key is {key}: int, str, bytes or tuple"):
                    t.get(self.counts, key)
            with self.assertRaisesRegex(TypeError, "^a field of the key is None: "):
                t.get(self.words, ("a", None))
            with self.assertRaisesRegex(TypeError, "^row is 'text': bytes"):
                t.insert(self.words, "two", "text")
            for call in (t.get, t.exists, t.remove):
                with self.assertRaisesRegex(TypeError, "^table is 'words': a gannet.Table"):
                    call("words", "one")
            with self.assertRaisesRegex(TypeError, "^table is 5: a gannet.Table"):
                t.scan(5)
            for place in ("one", ("words", "one"), (self.words, "one", 2)):
                with self.assertRaisesRegex(TypeError, "t.table, key., or t.table..key."):
                    t[place]
                with self.assertRaises(TypeError):
                    place in t
        with self.db.transaction() as t:
            self.assertEqual(t[self.words, "one"], b"1")

    def test_the_rows_of_a_table_are_a_mapping(self):
        with self.db.transaction() as t:
            words = t[self.words]
            words["one"] = b"1"
            words["two"] = b"2"
            self.assertIn("one", words)
            self.assertNotIn("three", words)
            self.assertEqual(words["two"], b"2")
            self.assertEqual(words.get("three", b"?"), b"?")
            self.assertEqual(list(words), ["one", "two"])
            self.assertEqual(dict(words.items()), {"one": b"1", "two": b"2"})
            del words["one"]
            with self.assertRaisesRegex(KeyError, "key 'one'"):
                words["one"]
            with self.assertRaises(TypeError):
                iter(t)

    def test_errors_have_the_names_that_users_know(self):
        with self.db.transaction() as t:
            with self.assertRaises(gannet.NotFound) as raised:
                t[self.words, "one"]
        self.assertEqual(repr(type(raised.exception)), "<class 'gannet.NotFound'>")
        self.assertEqual(type(pickle.loads(pickle.dumps(raised.exception))), gannet.NotFound)

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

    def test_adds_to_unsigned_numbers(self):
        largest = (1 << 64) - 1
        for table, place in ((self.db.create_table("stock", payload="<u8"), 0),
                             (self.db.create_table("both", payload=[("name", "S8"), ("left", "<u8")]), "left")):
            with self.db.transaction() as t:
                t[table, 1] = 1 if place == 0 else ("bolt", 1)
                with self.assertRaises(gannet.OutOfRange):
                    t.add(table, 1, -2, place)
                self.assertEqual(t.add(table, 1, -1, place), 0)
                self.assertEqual(t.add(table, 1, largest, place), largest)
                with self.assertRaises(gannet.OutOfRange):
                    t.add(table, 1, 1, place)
                self.assertEqual(t.add(table, 1, -1, 8 if place else 0), largest - 1)

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
            tuples = [gannet.unpack(key) for key in t.keys(self.db.table("words", key=bytes))]
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
                self.assertTrue(all(key.encode() == row for key, row in rows))
                self.assertEqual([key for key, _ in rows], list(t.keys(self.letters, *args, **kwargs)))
                return "".join(key for key, _ in rows)

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
                if key == "c":
                    t[self.letters, "cc"] = b"c"
                    del t[self.letters, "d"]
            self.assertEqual(list(t.keys(self.letters)), [])

    def test_a_loop_meets_what_it_changes(self):
        """At every position of a batch, in both directions: the next row removed, one inserted, and one at the end."""
        numbers = self.db.create_table("numbers", payload=8)
        count = 400  # several batches

        def fill(t):
            for number in range(count):
                t[numbers, 10 * number + 10] = struct.pack("<q", number)

        for reverse in (False, True):
            step = -10 if reverse else 10
            last = 10 if reverse else 10 * count
            for place in list(range(0, 20)) + [63, 64, 65, 72, 73, 74, 136, 137, 138, 329, 330, 398, 399]:
                with self.db.begin() as t:  # which is not committed
                    fill(t)
                    first = last - step * (count - 1)
                    expected = [first + step * i for i in range(count)]
                    changed = first + step * place
                    met = []
                    for key, row in t.scan(numbers, reverse=reverse):
                        self.assertEqual(len(row), 8)
                        met.append(key)
                        if key == changed:
                            if changed != last:
                                t.remove(numbers, key + step)
                                expected.remove(key + step)
                            t[numbers, key + step // 10] = bytes(8)
                            expected.insert(place + 1, key + step // 10)
                        if key == last:
                            t[numbers, last + step // 2] = bytes(8)
                            expected.append(last + step // 2)
                    self.assertEqual(met, [key for key in expected], (reverse, place))

    def test_a_loop_that_ends_early_costs_no_conflict_with_rows_far_behind(self):
        many = self.db.create_table("many", payload=8)
        with self.db.transaction() as t:
            for number in range(1000):
                t[many, number] = bytes(8)
        with self.db.transaction() as t:
            for _ in t.scan(many):
                break
            self.db.run(lambda other: other.add(many, 999, 1))
            t.add(many, 0, 1)

    def test_threads_that_share_an_iterator_get_each_row_once_or_an_error(self):
        numbers = self.db.create_table("numbers", payload=8)
        with self.db.transaction() as t:
            for number in range(3000):
                t[numbers, number] = bytes(8)
        for _ in range(5):
            met = []
            with self.db.transaction() as t:
                rows = t.keys(numbers)

                def take():
                    while True:
                        try:
                            key = next(rows, None)
                        except RuntimeError as error:
                            self.assertRegex(str(error), "two threads use one")
                            continue
                        if key is None:
                            return
                        met.append(key)

                threads = [threading.Thread(target=take) for _ in range(3)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            self.assertEqual(sorted(met), list(range(3000)))

    def test_a_cursor_is_not_used_while_another_thread_uses_its_transaction(self):
        numbers = self.db.create_table("numbers", payload=8)
        with self.db.transaction() as t:
            for number in range(3000):
                t[numbers, number] = bytes(8)
        with self.db.transaction() as t:
            cursor = t.cursor(numbers)
            self.assertTrue(cursor.first())
            over = threading.Event()
            arrays = []

            def read():
                while not over.is_set():
                    arrays.append(len(t.array(numbers)))

            thread = threading.Thread(target=read)
            thread.start()
            try:
                for what in (lambda: cursor.key, lambda: cursor.row):
                    with self.assertRaisesRegex(RuntimeError, "two threads use one transaction"):
                        end = len(arrays) + 1000
                        while len(arrays) < end:
                            what()
            finally:
                over.set()
                thread.join()
            self.assertEqual((cursor.key, cursor.row), (0, bytes(8)))

    def test_an_iterator_stays_over(self):
        with self.db.transaction() as t:
            rows = t.keys(self.letters, "y")
            self.assertEqual(list(rows), ["y", "z"])
            t[self.letters, "zz"] = b"z"
            self.assertEqual(list(rows), [])
            rows = t.scan(self.letters)
            self.assertEqual(next(rows), ("a", b"a"))
        with self.assertRaisesRegex(ValueError, "closed|has ended"):
            for _ in range(50):
                next(rows)

    def test_cursor(self):
        with self.db.transaction() as t:
            cursor = t.cursor(self.letters, "c", "x")
            self.assertIsNone(cursor.key)
            self.assertTrue(cursor.seek_forward("m1"))
            self.assertEqual((cursor.key, cursor.row), ("n", b"n"))
            self.assertTrue(cursor.previous())
            self.assertEqual(cursor.key, "m")
            self.assertTrue(cursor.seek_backward("a1") is False)
            self.assertIsNone(cursor.row)
            with self.assertRaises(gannet.FailedPrecondition):
                cursor.next()
            self.assertTrue(cursor.last())
            self.assertEqual(cursor.key, "w")
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
            self.assertEqual(keys, ["Bern", "Oslo"])
            self.assertEqual(rows["people"].tolist(), [134_000, 700_001])
            keys, rows = t.array(self.db.table("cities"), reverse=True)
            self.assertEqual(rows.shape, (2, 24))
            self.assertEqual(keys, ["Oslo", "Bern"])
            keys, rows = t.array(cities, prefix="X")
            self.assertEqual((keys, len(rows)), ([], 0))
        with self.db.transaction() as t:
            with self.assertRaises(ValueError):
                t.array(self.db.create_table("variable"))

    def test_tuples_and_dicts_are_rows(self):
        dtype = numpy.dtype([("mail", "S8"), ("born", "<i4"), ("size", "<f4")])
        people = self.db.create_table("people", payload=dtype)
        with self.db.transaction() as t:
            t[people, 1] = ("ann", 1980, 1.5)
            t.insert(people, 2, {"born": 1990, "mail": "z\u00fc", "size": 2})
            self.assertEqual(t[people, 1].tolist(), (b"ann", 1980, 1.5))
            self.assertEqual(t[people, 2].tolist(), ("z\u00fc".encode(), 1990, 2.0))
            self.assertTrue(t.update_if(people, 1, ("ann", 1980, 1.5), ("bob", 1980, 1.5)))
            for row, error, text in (
                    (("ann", 1980), ValueError, "the row has 2 fields, the dtype 3: mail, born, size"),
                    ({"mail": "ann", "born": 1}, ValueError, "the row has the fields mail, born; "),
                    ({"mail": "a", "born": 1, "size": 1, "x": 1}, ValueError, "the row has the fields .*x; "),
                    (("too long a name", 1, 1), ValueError, "mail is 'too long a name', which has more than 8 bytes"),
                    (("ann", "year", 1), ValueError, "invalid literal"),
                    (("ann", 1.5, 1), TypeError, "born is 1.5: an int"),
                    (("ann", 1 << 31, 1), ValueError, "born is 2147483648, which does not fit int32"),
                    (5, TypeError, "row is 5, but the dtype of table 'people' is ")):
                with self.assertRaisesRegex(error, text):
                    t.upsert(people, 3, row)
            self.assertEqual(len(list(t.keys(people))), 2)
        sums = self.db.create_table("sums", payload=[("a", "<f8"), ("b", "<i8"), ("c", "<i4")])
        numbers = self.db.create_table("numbers", payload="<i8")
        with self.db.transaction() as t:
            t[sums, 1] = (0.5, 5, 0)
            self.assertEqual(t.add(sums, 1, 2, "b"), 7)
            self.assertEqual(t.add(sums, 1, 0.25, "a"), 0.75)
            for delta, field in ((1, "a"), (1.0, "b"), (1, "c")):
                with self.assertRaisesRegex(TypeError, "^delta is "):
                    t.add(sums, 1, delta, field)
            with self.assertRaisesRegex(ValueError, "no field 'd': it has a, b, c"):
                t.add(sums, 1, 1, "d")
            with self.assertRaisesRegex(TypeError, "'numbers' has no dtype with fields"):
                t.add(numbers, 1, 1, "d")
            t[numbers, 1] = 40
            self.assertEqual(t[numbers, 1], 40)
            for row in ((1,), {"a": 1}, 1.5):
                with self.assertRaisesRegex(TypeError, "row is "):
                    t[numbers, 1] = row
            with self.assertRaisesRegex(ValueError, "row is 9223372036854775808, which does not fit int64"):
                t[numbers, 1] = 1 << 63
            bits = self.db.create_table("bits", payload=numpy.uint8)
            t[bits, 1] = numpy.uint8(7)
            self.assertEqual(t[bits, 1], 7)

    def test_rows_that_were_read_are_copies_to_write(self):
        dtype = numpy.dtype([("x", "<i4"), ("y", "<i4")])
        points = self.db.create_table("points", payload=dtype)
        with self.db.transaction() as t:
            for i in range(20):
                t[points, i] = (i, -i)
        with self.db.transaction() as t:
            row = t[points, 3]
            row["x"] = 7
            self.assertEqual(t[points, 3]["x"], 3)
            t[points, 3] = row
            self.assertEqual(t[points, 3]["x"], 7)
            for key, row in t.scan(points):
                row["y"] = 2 * key
                t[points, key] = row
            kept = [row for _, row in t.scan(points)]
            self.assertEqual([row["y"] for row in kept], [2 * i for i in range(20)])
            kept[0]["y"] = 1000
            _, rows = t.array(points)
            rows["y"] += 1
            self.assertEqual([row["y"] for _, row in t.scan(points)], [2 * i for i in range(20)])


class IndexTest(GannetTest):

    def setUp(self):
        super().setUp()
        self.dtype = numpy.dtype([("mail", "S16"), ("born", "<i4"), ("city", "S8"), ("size", "<f8")])
        self.people = self.db.create_table("people", payload=self.dtype)
        self.by_mail = self.db.create_index("by_mail", self.people, "mail", unique=True)
        with self.db.transaction() as t:
            t[self.people, 1] = ("ann", 1980, "Bern", 1.5)
            t[self.people, 2] = ("bob", -20, "Oslo", 1.7)
            t[self.people, 3] = ("cleo", 1990, "Bern", 1.6)
        self.by_place = self.db.create_index("by_place", self.people, ("city", "born"))

    def test_describes_itself(self):
        self.assertEqual((self.by_mail.name, self.by_mail.unique, self.by_mail.table), ("by_mail", True, self.people))
        self.assertEqual(repr(self.by_mail), "<gannet.Index 'by_mail' of table 'people', unique>")
        self.assertEqual([index.name for index in self.db.indexes()], ["by_mail", "by_place"])
        self.assertEqual([table.name for table in self.db.tables()], ["people"])
        with self.assertRaises(gannet.NotFound):
            self.db.table("by_mail")
        with self.assertRaises(gannet.NotFound):
            self.db.index("people")

    def test_finds_a_row(self):
        with self.db.transaction() as t:
            key, ann = t.get_by(self.by_mail, "ann")
            self.assertEqual((key, ann["born"]), (1, 1980))
            self.assertEqual(t.get_by(self.by_mail, (b"bob",))[0], 2)
            self.assertIsNone(t.get_by(self.by_mail, "dan"))
            self.assertEqual(t.get_by(self.by_mail, "dan", 5), 5)
            with self.assertRaisesRegex(gannet.InvalidArgument, "is a tuple of its fields"):
                t.get_by(self.by_mail, 5)
            with self.assertRaisesRegex(gannet.FailedPrecondition, "is not unique: scan it, which finds all rows"):
                t.get_by(self.by_place, ("Bern", 1980))
            with self.assertRaisesRegex(TypeError, "^index is <gannet.Table"):
                t.get_by(self.people, 1)

    def test_is_another_order_of_the_rows(self):
        with self.db.transaction() as t:
            self.assertEqual(list(t.keys(self.by_place)), [1, 3, 2])
            self.assertEqual(list(t.keys(self.by_place, reverse=True)), [2, 3, 1])
            self.assertEqual(list(t.keys(self.by_place, ("Bern", 1985))), [3, 2])
            self.assertEqual(list(t.keys(self.by_place, stop="Oslo")), [1, 3])
            self.assertEqual(list(t.keys(self.by_place, prefix="Bern")), [1, 3])
            self.assertEqual([row["mail"] for _, row in t.scan(self.by_place, prefix=("Bern",))], [b"ann", b"cleo"])
            keys, rows = t.array(self.by_mail, "b")
            self.assertEqual((keys, rows["born"].tolist()), ([2, 3], [-20, 1990]))
            cursor = t.cursor(self.by_place)
            self.assertIsNone(cursor.index_key)
            self.assertTrue(cursor.seek_forward("C"))
            self.assertEqual((cursor.key, cursor.index_key, cursor.row["size"]), (2, ("Oslo", -20), 1.7))
            self.assertTrue(cursor.seek_backward(("Bern", 1985)))
            self.assertEqual(cursor.key, 1)
            with self.assertRaises(ValueError):
                t.cursor(self.people).index_key

    def test_sees_changes_of_its_loop(self):
        with self.db.transaction() as t:
            met = []
            for key, person in t.scan(self.by_place):
                met.append(key)
                if key == 1 and person["born"] == 1980:
                    t.remove(self.people, 3)
                    person["born"] = 2000
                    t[self.people, 1] = person  # moves forward
            self.assertEqual(met, [1, 1, 2])

    def test_is_unique(self):
        with self.assertRaisesRegex(gannet.AlreadyExists, "by_mail"):
            with self.db.transaction() as t:
                t[self.people, 4] = ("bob", 1, "Rome", 0)
        with self.assertRaisesRegex(gannet.AlreadyExists, "by_city"):
            self.db.create_index("by_city", self.people, "city", unique=True)
        with self.db.transaction() as t:  # the index that failed is not kept
            t[self.people, 5] = ("eve", 1, "Bern", 0)

    def test_is_created_twice_if_the_definitions_agree(self):
        again = self.db.create_index("by_place", self.people, ["city", "born"])
        with self.db.transaction() as t:
            self.assertEqual(next(t.keys(again)), 1)
        for option, fields, unique in (("fields", "city", False), ("uniqueness", ["city", "born"], True)):
            with self.assertRaisesRegex(gannet.InvalidArgument, f"'by_place' exists with another {option}: "):
                self.db.create_index("by_place", self.people, fields, unique=unique)
        with self.assertRaises(gannet.AlreadyExists):
            self.db.create_index("people", self.people, "city")

    def test_a_dropped_table_gets_none(self):
        gone = self.db.create_table("gone", payload=self.dtype)
        self.db.drop_table("gone")
        with self.assertRaisesRegex(gannet.FailedPrecondition, "table 'gone' has been dropped"):
            self.db.create_index("by_city", gone, "city")
        self.db.create_table("gone", payload=self.dtype)  # another one of its name
        with self.assertRaisesRegex(gannet.FailedPrecondition, "table 'gone' has been dropped"):
            self.db.create_index("by_city", gone, "city")

    def test_is_kept_by_the_directory(self):
        self.db.close()
        self.db = self.open()
        people = self.db.table("people", self.dtype)
        with self.db.transaction() as t:
            self.assertEqual(t.get_by(self.db.index("by_mail", people), "ann")[1]["born"], 1980)
            self.assertIsInstance(t.get_by(self.db.index("by_mail"), "ann")[1], bytes)
        self.assertEqual(self.db.create_index("by_mail", people, "mail", unique=True).name, "by_mail")
        with self.assertRaisesRegex(gannet.InvalidArgument, "by_place"):
            self.db.create_index("by_place", people, "mail")
        with self.assertRaises(gannet.FailedPrecondition):
            self.db.drop_table("people")
        self.db.drop_index("by_mail")
        self.db.drop_index("by_place")
        self.db.drop_table("people")
        with self.assertRaises(gannet.NotFound):
            self.db.drop_index("by_mail")

    def test_fields_without_a_dtype(self):
        words = self.db.create_table("words", key=(str, int), payload=8)
        by_number = self.db.create_index("by_number", words, gannet.Field("<u4", 4))
        by_key = self.db.create_index("by_key", words, gannet.Field("V2", 1, of_key=True))
        with self.db.transaction() as t:
            t[words, ("a", 1)] = struct.pack("<II", 0, 9)
            t[words, ("b", 1)] = struct.pack("<II", 0, 8)
            self.assertEqual(list(t.keys(by_number)), [("b", 1), ("a", 1)])
            self.assertEqual(list(t.keys(by_number, 9)), [("a", 1)])
            self.assertEqual(len(list(t.keys(by_key))), 2)

    def test_keys_of_a_function_are_taken_as_they_are(self):

        class OfAFunction:  # only a program in C++ makes such an index
            fields = []

            def with_keys(self, _):
                return self

        by_function = gannet.Index(OfAFunction(), self.people)
        for key in (b"ann", 5, None):
            self.assertEqual(gannet._key_of(by_function, key), key)
        self.assertEqual(gannet._key_of(self.by_mail, b"ann"), (b"ann",))

    def test_errors(self):
        create = self.db.create_index
        big = self.db.create_table("big", payload=[("a", ">i4"), ("b", "U4"), ("c", "<i4", 2)])
        for text, call in (("^name is 5", lambda: create(5, self.people, "mail")),
                           ("^table is 'people'", lambda: create("x", "people", "mail")),
                           ("^field is 5", lambda: create("x", self.people, [5])),
                           ("is >i4: an index has", lambda: create("x", big, "a")),
                           ("an index has", lambda: create("x", big, "b")),
                           ("an index has", lambda: create("x", big, "c")),
                           ("'plain' has no dtype", lambda: create("x", self.db.create_table("plain"), "mail"))):
            with self.assertRaisesRegex(TypeError, text):
                call()
        with self.assertRaisesRegex(ValueError, "no field 'post'"):
            create("x", self.people, "post")
        with self.assertRaises(gannet.InvalidArgument):
            create("x", self.people, [])
        with self.assertRaisesRegex(ValueError, "is one of table 'people'"):
            self.db.index("by_mail", big)


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

    def test_a_body_that_ends_its_transaction_commits_nothing(self):
        for name in ("commit", "rollback"):

            def end(t, swallow):
                t.add(self.rows, 1, 1)
                try:
                    getattr(t, name)()
                except gannet.FailedPrecondition:
                    if not swallow:
                        raise

            for swallow in (False, True):
                with self.assertRaisesRegex(gannet.FailedPrecondition, f"^{name} was called in run, so nothing"):
                    self.db.run(end, swallow)
                with self.assertRaisesRegex(gannet.FailedPrecondition, f"^{name} was called in transaction, so no"):
                    with self.db.transaction() as t:
                        end(t, swallow)
        self.assertEqual(self.row(), 0)

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
            with self.assertRaisesRegex(gannet.FailedPrecondition,
                                        "close: 1 transaction is open; let its block, or the call of run, end before"):
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
            with self.assertRaisesRegex(gannet.NotFound, "check the path, or give create=True to create it there"):
                gannet.open(os.path.join(scratch, "none"))
            for name, value in (("durability", 3), ("memory_bytes", "1G"), ("checkpoint_every", "1s"),
                                ("group_commit", True), ("durable_within", []), ("largest_transaction_bytes", 1.5),
                                ("recovery_threads", "2"),
                                ("open_transactions", True), ("application", 5), ("on_event", 5)):
                with self.assertRaisesRegex(TypeError, f"^{name} is "):
                    gannet.open(None, **{name: value})
            with self.assertRaisesRegex(ValueError, "^memory_bytes is -1"):
                gannet.open(None, memory_bytes=-1)
            with self.assertRaises(TypeError):
                gannet.open(None, memory=5)
            with self.assertRaises(ValueError):
                gannet.open(None, durability="always")
            with self.assertRaisesRegex(gannet.InvalidArgument, "^open_transactions is 0"):
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
            with self.assertRaisesRegex(gannet.NotFound, "\ufffd/none"):
                gannet.open(name + "/none")
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


class ForkTest(GannetTest):
    """os.fork, and multiprocessing, whose children are forked by default."""

    def setUp(self):
        super().setUp()
        self.rows = self.db.create_table("rows", payload=8)

    def test_a_child_is_refused(self):
        with self.db.begin() as t:
            t.upsert(self.rows, 1, bytes(8))
            calls = {
                "commit": t.commit, "get": lambda: t.get(self.rows, 1), "close": self.db.close,
                "checkpoint": self.db.checkpoint, "create": lambda: self.db.create_table("more"),
                "index": lambda: self.db.create_index("more", self.rows, gannet.Field("<i8")),
                "run": lambda: self.db.run(lambda other: other.get(self.rows, 1)),
                "backup": lambda: self.db.backup(self.scratch.name + "/copy"), "log": self.db.check_log,
            }
            pid = os.fork()
            if pid == 0:
                signal.alarm(60)
                wrong = 1
                try:
                    wrong = sum(not is_refused(call, os.getppid()) for call in calls.values())
                finally:
                    os._exit(min(wrong, 100))
            self.assertEqual(os.waitpid(pid, 0)[1], 0)
            t.commit()
        with self.db.transaction() as t:
            self.assertIn(1, t[self.rows])

    def test_multiprocessing(self):
        global forked_db
        forked_db = self.db
        try:
            with multiprocessing.get_context("fork").Pool(2) as pool:
                told = pool.map_async(close_in_child, range(4)).get(60)
                self.db.run(lambda t: t.upsert(self.rows, 1, bytes(8)))
                self.assertEqual(told, [f"this database was opened by process {os.getpid()}; open it after fork"] * 4)
                self.db.close()
                self.db = self.open()  # the children live
        finally:
            forked_db = None


forked_db = None


def close_in_child(_):
    try:
        forked_db.close()
    except gannet.FailedPrecondition as error:
        return str(error)
    return "closed"


def is_refused(call, parent):
    try:
        call()
    except gannet.FailedPrecondition as error:
        if str(error) == f"this database was opened by process {parent}; open it after fork":
            return True
        print(error, file=sys.stderr)
    except BaseException as error:  # pylint: disable=broad-except
        print(repr(error), file=sys.stderr)
    return False


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

    def test_salvage_tells_what_it_leaves_out(self):
        with gannet.open(self.directory, create=True, memory_bytes=64 << 20) as db:
            table = db.create_table("rows")
            with db.transaction() as t:
                t.insert(table, 1, b"one")
        with open(self.directory + "/LOG-END", "wb"):
            pass
        events = []
        note = lambda level, text: events.append((level, text))
        with self.assertRaisesRegex(gannet.DataLoss, "--salvage"):
            gannet.open(self.directory, memory_bytes=64 << 20, on_event=note)
        with gannet.open(self.directory, salvage=True, memory_bytes=64 << 20, on_event=note) as db:
            with db.transaction() as t:
                self.assertEqual(t.get(db.table("rows"), 1), b"one")
        self.assertIn("warning", [level for level, _ in events])
        self.assertIn("LOG-END", events[0][1])

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

    def test_a_child_exits_while_the_engine_tells(self):
        # The thread that is in on_event at the fork is not in the child, whose exit must not wait for it.
        self.run_program("""
import os, signal, sys, threading, gannet
inside, leave = threading.Event(), threading.Event()
def note(level, text):
    inside.set()
    leave.wait(60)
db = gannet.open(sys.argv[1], create=True, memory_bytes=64 << 20, checkpoint_every=0.001, on_event=note)
assert inside.wait(60)
pid = os.fork()
if pid == 0:
    signal.alarm(60)
    sys.exit(0)
status = os.waitpid(pid, 0)[1]
leave.set()
db.close()
assert status == 0, status
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
