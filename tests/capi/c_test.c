/* The C interface, used by a program in C: every function, and every kind of error that it can have. */
#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gannet.h"

static int failures = 0;

#define EXPECT(condition)                                                                            \
  do {                                                                                               \
    if (!(condition)) {                                                                              \
      ++failures;                                                                                    \
      fprintf(stderr, "%s:%d: %s does not hold; last message: %s\n", __FILE__, __LINE__, #condition, \
              gannet_message());                                                                     \
    }                                                                                                \
  } while (0)

#define EXPECT_CODE(expected, call)                                                                                    \
  do {                                                                                                                 \
    const gannet_code code_ = (call);                                                                                  \
    if (code_ != (expected)) {                                                                                         \
      ++failures;                                                                                                      \
      fprintf(stderr, "%s:%d: %s is %s (%d), not %s: %s\n", __FILE__, __LINE__, #call, gannet_code_name(code_), code_, \
              gannet_code_name(expected), gannet_message());                                                           \
    }                                                                                                                  \
  } while (0)

#define EXPECT_MESSAGE(text) EXPECT(strstr(gannet_message(), text) != NULL)

static gannet_key text_key(const char* text) {
  return gannet_key_bytes(text, strlen(text));
}

static gannet_database* open_database(const char* directory, int create) {
  gannet_options* options = gannet_options_new();
  gannet_database* database = NULL;
  gannet_options_set_create_if_missing(options, create);
  gannet_options_set_memory_bytes(options, (uint64_t)256 << 20);
  gannet_options_set_group_commit_microseconds(options, 100);
  gannet_options_set_durable_within_milliseconds(options, 60000);
  gannet_options_set_recovery_threads(options, 1);
  gannet_options_set_open_transactions(options, 8);
  gannet_options_set_application(options, "c_test");
  EXPECT_CODE(GANNET_OK, gannet_open(directory, options, &database));
  gannet_options_free(options);
  if (database == NULL) exit(1);
  return database;
}

static gannet_table* make_table(gannet_database* database, const char* name, enum gannet_key_kind kind,
                                const char* index, size_t payload, int variable) {
  gannet_table_options* options = gannet_table_options_new();
  gannet_table* table = NULL;
  gannet_table_options_set_key(options, kind, strcmp(index, "catfish") == 0 ? GANNET_RECTANGLE_KEY_BYTES : 32);
  gannet_table_options_set_index(options, index);
  gannet_table_options_set_payload(options, payload, variable);
  gannet_table_options_set_expected_rows(options, 100);
  gannet_table_options_set_application(options, "of c_test");
  EXPECT_CODE(GANNET_OK, gannet_create_table(database, name, options, &table));
  gannet_table_options_free(options);
  if (table == NULL) exit(1);
  return table;
}

/* ---- Codes ---- */

/* NULL for a handle, to functions that return no code. */
static void test_no_handles(void) {
  gannet_options_set_create_if_missing(NULL, 1);
  gannet_options_set_durability(NULL, GANNET_DURABILITY_SYNC);
  gannet_options_set_memory_bytes(NULL, 1);
  gannet_options_set_group_commit_microseconds(NULL, 1);
  gannet_options_set_durable_within_milliseconds(NULL, 1);
  gannet_options_set_checkpoint_every_milliseconds(NULL, 1);
  gannet_options_set_largest_transaction_bytes(NULL, 1);
  gannet_options_set_recovery_threads(NULL, 1);
  gannet_options_set_salvage(NULL, 1);
  gannet_options_set_open_transactions(NULL, 1);
  gannet_options_set_application(NULL, "");
  gannet_options_set_on_event(NULL, NULL, NULL);
  gannet_options_free(NULL);
  gannet_table_options_set_key(NULL, GANNET_KEY_BYTES, 1);
  gannet_table_options_set_key_form(NULL, GANNET_KEYS_TEXT);
  gannet_table_options_set_index(NULL, "hash");
  gannet_table_options_set_payload(NULL, 1, 1);
  gannet_table_options_set_expected_rows(NULL, 1);
  gannet_table_options_set_application(NULL, "");
  gannet_table_options_free(NULL);
  EXPECT(gannet_table_count(NULL) == 0);
  EXPECT(gannet_table_at(NULL, 0) == NULL);
  EXPECT(strcmp(gannet_table_name(NULL), "") == 0);
  EXPECT(gannet_table_key_kind(NULL) == GANNET_KEY_INTEGER);
  EXPECT(gannet_table_max_key_bytes(NULL) == 0);
  EXPECT(gannet_table_key_form(NULL) == GANNET_KEYS_PLAIN);
  EXPECT(strcmp(gannet_table_index(NULL), "") == 0);
  EXPECT(!gannet_table_is_ordered(NULL));
  EXPECT(gannet_table_payload_bytes(NULL) == 0);
  EXPECT(!gannet_table_has_variable_payloads(NULL));
  EXPECT(strcmp(gannet_table_application(NULL), "") == 0);
  EXPECT(gannet_logged_epoch(NULL) == 0 && gannet_durable_epoch(NULL) == 0);
  EXPECT(!gannet_try_again(NULL, GANNET_ABORTED));
  gannet_transaction_free(NULL);
  EXPECT(gannet_cursor_key(NULL).data == NULL && gannet_cursor_payload(NULL).size == 0);
  gannet_cursor_close(NULL);
}

/* Programs and bindings keep these numbers. */
static void test_codes(void) {
  static const char* const names[] = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS"};
  gannet_code code;
  for (code = 0; code < 16; ++code) EXPECT(strcmp(gannet_code_name(code), names[code]) == 0);
  EXPECT(strcmp(gannet_code_name(16), "?") == 0);
  EXPECT(strcmp(gannet_code_name(-1), "?") == 0);
  EXPECT(strcmp(gannet_code_name(GANNET_FIRST_OWN_CODE), "OWN") == 0);
  EXPECT(GANNET_OK == 0 && GANNET_UNKNOWN == 2 && GANNET_INVALID_ARGUMENT == 3 && GANNET_NOT_FOUND == 5);
  EXPECT(GANNET_ALREADY_EXISTS == 6 && GANNET_RESOURCE_EXHAUSTED == 8 && GANNET_FAILED_PRECONDITION == 9);
  EXPECT(GANNET_ABORTED == 10 && GANNET_OUT_OF_RANGE == 11 && GANNET_DATA_LOSS == 15);
}

/* ---- Null pointers ---- */

/* The call gives NULL for this argument: the message names both. */
#define EXPECT_NULL(argument, function, ...)                                   \
  do {                                                                         \
    EXPECT_CODE(GANNET_INVALID_ARGUMENT, function(__VA_ARGS__));               \
    EXPECT(strcmp(gannet_message(), #function ": " argument " is NULL") == 0); \
  } while (0)

static void test_null_database(gannet_database* database) {
  gannet_table* table = NULL;
  gannet_transaction* t = NULL;
  const char* text = NULL;
  EXPECT_NULL("database", gannet_open, NULL, NULL, NULL);
  EXPECT_NULL("database", gannet_checkpoint, NULL);
  EXPECT_NULL("database", gannet_backup, NULL, "/nowhere");
  EXPECT_NULL("directory", gannet_backup, database, NULL);
  EXPECT_NULL("database", gannet_log_health, NULL);
  EXPECT_NULL("database", gannet_metrics, NULL, &text);
  EXPECT_NULL("text", gannet_metrics, database, NULL);
  EXPECT_NULL("database", gannet_create_table, NULL, "none", NULL, &table);
  EXPECT_NULL("name", gannet_create_table, database, NULL, NULL, &table);
  EXPECT_NULL("table", gannet_create_table, database, "none", NULL, NULL);
  EXPECT_NULL("database", gannet_find_table, NULL, "none", &table);
  EXPECT_NULL("name", gannet_find_table, database, NULL, &table);
  EXPECT_NULL("table", gannet_find_table, database, "none", NULL);
  EXPECT_NULL("database", gannet_rename_table, NULL, "from", "to");
  EXPECT_NULL("from", gannet_rename_table, database, NULL, "to");
  EXPECT_NULL("to", gannet_rename_table, database, "from", NULL);
  EXPECT_NULL("database", gannet_drop_table, NULL, "none");
  EXPECT_NULL("name", gannet_drop_table, database, NULL);
  EXPECT_NULL("database", gannet_widen_table, NULL, "none", 8);
  EXPECT_NULL("name", gannet_widen_table, database, NULL, 8);
  EXPECT_NULL("database", gannet_arrange_table, NULL, "none");
  EXPECT_NULL("name", gannet_arrange_table, database, NULL);
  EXPECT_NULL("database", gannet_run, NULL, NULL, NULL);
  EXPECT_NULL("body", gannet_run, database, NULL, NULL);
  EXPECT_NULL("database", gannet_begin, NULL, &t);
  EXPECT_NULL("transaction", gannet_begin, database, NULL);
  EXPECT_NULL("transaction", gannet_commit, NULL);
  EXPECT_NULL("transaction", gannet_validate, NULL);
  EXPECT_NULL("transaction", gannet_rollback, NULL);
  EXPECT(table == NULL && t == NULL && text == NULL);
}

static void test_null_in_operations(gannet_transaction* t, const gannet_table* table) {
  const gannet_key key = gannet_key_integer(1);
  const gannet_bytes some = {"some", 4};
  const gannet_bytes none = {NULL, 4};
  gannet_bytes view = {NULL, 7};
  int64_t sum = 7;
  size_t size = 7;
  int yes = 7;
  char buffer[4] = "abc";
  EXPECT_NULL("transaction", gannet_get, NULL, table, key, &view);
  EXPECT_NULL("table", gannet_get, t, NULL, key, &view);
  EXPECT_NULL("payload", gannet_get, t, table, key, NULL);
  EXPECT_NULL("transaction", gannet_get_copy, NULL, table, key, buffer, 4, &size);
  EXPECT_NULL("table", gannet_get_copy, t, NULL, key, buffer, 4, &size);
  EXPECT_NULL("buffer", gannet_get_copy, t, table, key, NULL, 4, &size);
  EXPECT_NULL("size", gannet_get_copy, t, table, key, buffer, 4, NULL);
  EXPECT_NULL("transaction", gannet_exists, NULL, table, key, &yes);
  EXPECT_NULL("table", gannet_exists, t, NULL, key, &yes);
  EXPECT_NULL("exists", gannet_exists, t, table, key, NULL);
  EXPECT_NULL("transaction", gannet_insert, NULL, table, key, "some", 4);
  EXPECT_NULL("table", gannet_insert, t, NULL, key, "some", 4);
  EXPECT_NULL("transaction", gannet_update, NULL, table, key, "some", 4);
  EXPECT_NULL("table", gannet_update, t, NULL, key, "some", 4);
  EXPECT_NULL("transaction", gannet_upsert, NULL, table, key, "some", 4);
  EXPECT_NULL("table", gannet_upsert, t, NULL, key, "some", 4);
  EXPECT_NULL("transaction", gannet_update_if, NULL, table, key, some, some, &yes);
  EXPECT_NULL("table", gannet_update_if, t, NULL, key, some, some, &yes);
  EXPECT_NULL("expected.data", gannet_update_if, t, table, key, none, some, &yes);
  EXPECT_NULL("updated", gannet_update_if, t, table, key, some, some, NULL);
  EXPECT_NULL("transaction", gannet_remove, NULL, table, key);
  EXPECT_NULL("table", gannet_remove, t, NULL, key);
  EXPECT_NULL("transaction", gannet_add, NULL, table, key, 0, 1, &sum);
  EXPECT_NULL("table", gannet_add, t, NULL, key, 0, 1, &sum);
  EXPECT(view.size == 7 && sum == 7 && size == 7 && yes == 7 && strcmp(buffer, "abc") == 0);
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_insert(t, table, key, NULL, 4));
  EXPECT_MESSAGE("the payload is NULL");
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_update(t, table, key, NULL, 4));
  EXPECT_MESSAGE("the payload is NULL");
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_upsert(t, table, key, NULL, 4));
  EXPECT_MESSAGE("the payload is NULL");
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_update_if(t, table, key, some, none, &yes));
  EXPECT_MESSAGE("the payload is NULL");
}

static void test_null_in_cursors(gannet_transaction* t, const gannet_table* table) {
  const gannet_key key = gannet_key_integer(1);
  const gannet_rectangle window = {0, 0, 1, 1};
  gannet_cursor* rows = NULL;
  EXPECT_NULL("transaction", gannet_cursor_open, NULL, table, GANNET_CURSOR_READ, &rows);
  EXPECT_NULL("table", gannet_cursor_open, t, NULL, GANNET_CURSOR_READ, &rows);
  EXPECT_NULL("cursor", gannet_cursor_open, t, table, GANNET_CURSOR_READ, NULL);
  EXPECT_NULL("transaction", gannet_search_open, NULL, table, &window, GANNET_CURSOR_READ, &rows);
  EXPECT_NULL("table", gannet_search_open, t, NULL, &window, GANNET_CURSOR_READ, &rows);
  EXPECT_NULL("window", gannet_search_open, t, table, NULL, GANNET_CURSOR_READ, &rows);
  EXPECT_NULL("cursor", gannet_search_open, t, table, &window, GANNET_CURSOR_READ, NULL);
  EXPECT_NULL("transaction", gannet_nearest_open, NULL, table, 0, 0, 1, GANNET_CURSOR_READ, &rows);
  EXPECT_NULL("table", gannet_nearest_open, t, NULL, 0, 0, 1, GANNET_CURSOR_READ, &rows);
  EXPECT_NULL("cursor", gannet_nearest_open, t, table, 0, 0, 1, GANNET_CURSOR_READ, NULL);
  EXPECT_NULL("cursor", gannet_cursor_set_range, NULL, &key, 1, &key, 1);
  EXPECT_NULL("cursor", gannet_cursor_set_prefix, NULL, "a", 1);
  EXPECT_NULL("cursor", gannet_cursor_first, NULL);
  EXPECT_NULL("cursor", gannet_cursor_last, NULL);
  EXPECT_NULL("cursor", gannet_cursor_next, NULL);
  EXPECT_NULL("cursor", gannet_cursor_previous, NULL);
  EXPECT_NULL("cursor", gannet_cursor_seek_forward, NULL, key);
  EXPECT_NULL("cursor", gannet_cursor_seek_backward, NULL, key);
  EXPECT_NULL("cursor", gannet_cursor_update, NULL, "some", 4);
  EXPECT_NULL("cursor", gannet_cursor_remove, NULL);
  EXPECT(rows == NULL);
  EXPECT_CODE(GANNET_OK, gannet_cursor_open(t, table, GANNET_CURSOR_READ, &rows));
  EXPECT_NULL("data", gannet_cursor_set_prefix, rows, NULL, 1);
  gannet_cursor_close(rows);
}

static void test_null_in_keys(void) {
  const gannet_rectangle box = {0, 0, 1, 1};
  gannet_tuple* const tuple = gannet_tuple_new();
  gannet_key rest = gannet_tuple_key(tuple);
  gannet_rectangle decoded;
  uint64_t id = 0;
  int64_t number = 0;
  double real = 0;
  int yes = 0;
  size_t size = 0;
  char bytes[GANNET_RECTANGLE_KEY_BYTES];
  EXPECT_NULL("rectangle", gannet_encode_rectangle, NULL, 1, bytes);
  EXPECT_NULL("bytes", gannet_encode_rectangle, &box, 1, NULL);
  EXPECT_NULL("rectangle", gannet_decode_rectangle, rest, NULL, &id);
  EXPECT_NULL("id", gannet_decode_rectangle, rest, &decoded, NULL);
  EXPECT_NULL("tuple", gannet_tuple_add_signed, NULL, 1);
  EXPECT_NULL("tuple", gannet_tuple_add_unsigned, NULL, 1);
  EXPECT_NULL("tuple", gannet_tuple_add_double, NULL, 1);
  EXPECT_NULL("tuple", gannet_tuple_add_bool, NULL, 1);
  EXPECT_NULL("tuple", gannet_tuple_add_bytes, NULL, "a", 1);
  EXPECT_NULL("data", gannet_tuple_add_bytes, tuple, NULL, 1);
  EXPECT_NULL("rest", gannet_tuple_read_signed, NULL, &number);
  EXPECT_NULL("to", gannet_tuple_read_signed, &rest, NULL);
  EXPECT_NULL("rest", gannet_tuple_read_unsigned, NULL, &id);
  EXPECT_NULL("to", gannet_tuple_read_unsigned, &rest, NULL);
  EXPECT_NULL("rest", gannet_tuple_read_double, NULL, &real);
  EXPECT_NULL("to", gannet_tuple_read_double, &rest, NULL);
  EXPECT_NULL("rest", gannet_tuple_read_bool, NULL, &yes);
  EXPECT_NULL("to", gannet_tuple_read_bool, &rest, NULL);
  EXPECT_NULL("rest", gannet_tuple_read_bytes, NULL, bytes, 1, &size);
  EXPECT_NULL("buffer", gannet_tuple_read_bytes, &rest, NULL, 1, &size);
  EXPECT_NULL("to", gannet_tuple_read_bytes, &rest, bytes, 1, NULL);
  gannet_tuple_free(tuple);
}

static void test_null(gannet_database* database) {
  gannet_table* const table = make_table(database, "scratch", GANNET_KEY_INTEGER, "xstore", 8, 1);
  gannet_transaction* t = NULL;
  test_null_database(database);
  test_null_in_keys();
  EXPECT_CODE(GANNET_OK, gannet_begin(database, &t));
  test_null_in_operations(t, table);
  test_null_in_cursors(t, table);
  EXPECT_CODE(GANNET_OK, gannet_commit(t)); /* it has not failed */
  gannet_transaction_free(t);
  EXPECT_CODE(GANNET_OK, gannet_drop_table(database, "scratch"));
}

/* ---- Messages ---- */

static void* fail_in_thread(void* context) {
  gannet_table* found = context;
  EXPECT(strcmp(gannet_message(), "") == 0); /* nothing has failed here */
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_find_table(NULL, "of the thread", &found));
  EXPECT(found == context);
  return NULL;
}

static void test_messages(void) {
  gannet_table* found = NULL;
  pthread_t thread;
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_drop_table(NULL, "none"));
  EXPECT(pthread_create(&thread, NULL, fail_in_thread, &found) == 0);
  EXPECT(pthread_join(thread, NULL) == 0);
  EXPECT(!gannet_try_again(NULL, GANNET_ABORTED));
  EXPECT_CODE(GANNET_OK, gannet_close(NULL));
  EXPECT_MESSAGE("gannet_drop_table"); /* of this thread's last error */
}

/* ---- Tables ---- */

static void test_key_form(gannet_database* database) {
  gannet_table_options* const options = gannet_table_options_new();
  gannet_transaction* t = NULL;
  gannet_table* numbers = NULL;
  gannet_bytes payload;
  gannet_table_options_set_key_form(options, GANNET_KEYS_SIGNED);
  EXPECT_CODE(GANNET_OK, gannet_create_table(database, "numbers", options, &numbers));
  gannet_table_options_free(options);
  EXPECT(gannet_table_key_form(numbers) == GANNET_KEYS_SIGNED);
  EXPECT_CODE(GANNET_OK, gannet_begin(database, &t));
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_get(t, numbers, gannet_key_signed(-5), &payload));
  EXPECT_MESSAGE("key -5");
  gannet_transaction_free(t);
  EXPECT_CODE(GANNET_OK, gannet_drop_table(database, "numbers"));
}

/* An option that no table can have is named. */
static void expect_bad_table(gannet_database* database, const gannet_table_options* options, const char* says) {
  gannet_table* table = NULL;
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_create_table(database, "bad", options, &table));
  EXPECT_MESSAGE(says);
  EXPECT(table == NULL);
}

static void test_bad_tables(gannet_database* database) {
  gannet_table_options* const options = gannet_table_options_new();
  char text[5000];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = 0;
  gannet_table_options_set_key(options, GANNET_KEY_BYTES, 0);
  expect_bad_table(database, options, "max_key_bytes is 0");
  gannet_table_options_set_key(options, GANNET_KEY_BYTES, SIZE_MAX);
  expect_bad_table(database, options, "max_key_bytes");
  gannet_table_options_set_key(options, GANNET_KEY_INTEGER, 0);
  gannet_table_options_set_payload(options, 65537, 1);
  expect_bad_table(database, options, "65537");
  gannet_table_options_set_payload(options, 8, 0);
  gannet_table_options_set_index(options, NULL);
  expect_bad_table(database, options, "xstore");
  gannet_table_options_set_index(options, "catfish"); /* whose keys are rectangles */
  expect_bad_table(database, options, "40");
  gannet_table_options_set_index(options, "hash");
  gannet_table_options_set_application(options, text);
  expect_bad_table(database, options, "4096");
  gannet_table_options_free(options);
}

static gannet_code fill_widened(gannet_transaction* t, void* context) {
  return gannet_upsert(t, context, gannet_key_integer(1), "12345678", 8);
}

static gannet_code read_widened(gannet_transaction* t, void* context) {
  gannet_bytes payload = {NULL, 0};
  const gannet_code code = gannet_get(t, context, gannet_key_integer(1), &payload);
  EXPECT(payload.size == 12 && memcmp(payload.data, "12345678\0\0\0", 12) == 0);
  return code;
}

/* What the header says of tables that change under those that use them. */
static void test_changed_tables(gannet_database* database) {
  gannet_table* const table = make_table(database, "changing", GANNET_KEY_INTEGER, "hash", 8, 0);
  gannet_table* other = NULL;
  gannet_transaction* t = NULL;
  gannet_cursor* rows = NULL;
  gannet_bytes view;
  EXPECT_CODE(GANNET_OK, gannet_run(database, fill_widened, table));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_arrange_table(database, "changing"));
  EXPECT_CODE(GANNET_OK, gannet_widen_table(database, "changing", 12));
  EXPECT_CODE(GANNET_OK, gannet_run(database, read_widened, table));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_run(database, fill_widened, table));

  EXPECT_CODE(GANNET_OK, gannet_create_table(database, "other", NULL, &other));
  EXPECT_CODE(GANNET_ALREADY_EXISTS, gannet_rename_table(database, "changing", "other"));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_rename_table(database, "changing", ""));
  EXPECT_CODE(GANNET_OK, gannet_drop_table(database, "changing"));
  EXPECT_CODE(GANNET_OK, gannet_drop_table(database, "other"));
  EXPECT(strcmp(gannet_table_name(table), "changing") == 0); /* the handles are still there */
  EXPECT(gannet_table_payload_bytes(table) == 12);
  EXPECT_CODE(GANNET_OK, gannet_begin(database, &t));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_get(t, table, gannet_key_integer(1), &view));
  EXPECT_MESSAGE("changing");
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_upsert(t, other, gannet_key_integer(1), "x", 1));
  EXPECT_CODE(GANNET_OK, gannet_cursor_open(t, other, GANNET_CURSOR_READ, &rows));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_cursor_first(rows));
  gannet_cursor_close(rows);
  EXPECT_CODE(GANNET_OK, gannet_commit(t)); /* it has not failed */
  gannet_transaction_free(t);
}

static void test_tables(gannet_database* database) {
  gannet_table* const words = make_table(database, "words", GANNET_KEY_BYTES, "xstore", 100, 1);
  gannet_table* found = NULL;
  gannet_table_options* const wrong = gannet_table_options_new();

  EXPECT(strcmp(gannet_table_name(words), "words") == 0);
  EXPECT(gannet_table_key_kind(words) == GANNET_KEY_BYTES);
  EXPECT(gannet_table_max_key_bytes(words) == 32);
  EXPECT(gannet_table_key_form(words) == GANNET_KEYS_PLAIN);
  EXPECT(strcmp(gannet_table_index(words), "xstore") == 0);
  EXPECT(gannet_table_is_ordered(words));
  EXPECT(gannet_table_payload_bytes(words) == 100);
  EXPECT(gannet_table_has_variable_payloads(words));
  EXPECT(strcmp(gannet_table_application(words), "of c_test") == 0);

  EXPECT_CODE(GANNET_OK, gannet_find_table(database, "words", &found));
  EXPECT(found == words);
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_find_table(database, "cities", &found));
  EXPECT_MESSAGE("cities");
  EXPECT_CODE(GANNET_ALREADY_EXISTS, gannet_create_table(database, "words", NULL, &found));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_create_table(database, "", NULL, &found));

  gannet_table_options_set_index(wrong, "btree");
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_create_table(database, "cities", wrong, &found));
  EXPECT_MESSAGE("xstore"); /* it lists those that there are */
  gannet_table_options_set_index(wrong, "hash");
  gannet_table_options_set_key(wrong, (enum gannet_key_kind)7, 8);
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_create_table(database, "cities", wrong, &found));
  gannet_table_options_set_key(wrong, GANNET_KEY_INTEGER, 0);
  gannet_table_options_set_key_form(wrong, GANNET_KEYS_TUPLE);
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_create_table(database, "cities", wrong, &found));
  EXPECT_MESSAGE("key_form is tuple, which is for byte keys");
  gannet_table_options_set_key_form(wrong, (enum gannet_key_form)7);
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_create_table(database, "cities", wrong, &found));
  gannet_table_options_free(wrong);

  EXPECT_CODE(GANNET_OK, gannet_rename_table(database, "words", "nouns"));
  EXPECT(strcmp(gannet_table_name(words), "nouns") == 0);
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_rename_table(database, "words", "verbs"));
  EXPECT(gannet_table_count(database) == 1);
  EXPECT(gannet_table_at(database, 0) == words);
  EXPECT(gannet_table_at(database, 1) == NULL);

  EXPECT_CODE(GANNET_NOT_FOUND, gannet_widen_table(database, "words", 100));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_widen_table(database, "nouns", 1));
  EXPECT_CODE(GANNET_OK, gannet_widen_table(database, "nouns", gannet_table_payload_bytes(words) + 1));

  EXPECT_CODE(GANNET_NOT_FOUND, gannet_arrange_table(database, "words"));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_arrange_table(database, NULL));
  EXPECT_CODE(GANNET_OK, gannet_arrange_table(database, "nouns"));

  EXPECT_CODE(GANNET_NOT_FOUND, gannet_drop_table(database, "words"));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_drop_table(database, NULL));
  EXPECT_CODE(GANNET_OK, gannet_create_table(database, "scratch", NULL, &found));
  EXPECT_CODE(GANNET_OK, gannet_drop_table(database, "scratch"));
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_find_table(database, "scratch", &found));
  test_key_form(database);
  test_bad_tables(database);
  test_changed_tables(database);
  test_null(database);
  EXPECT(gannet_table_count(database) == 1);
}

/* ---- Operations ---- */

struct operations {
  const gannet_table* rows; /* integer keys, 8 bytes, a hash index */
  const gannet_table* texts;
};

static gannet_code use_operations(gannet_transaction* t, void* context) {
  const struct operations* const tables = context;
  const gannet_table* const rows = tables->rows;
  const gannet_table* const texts = tables->texts;
  const gannet_key one = gannet_key_integer(1);
  int64_t number = 40;
  int64_t sum = 0;
  int yes = 0;
  char buffer[8];
  size_t size = 0;
  gannet_bytes view = {NULL, 0};
  const gannet_bytes old = {"gull", 4};
  const gannet_bytes changed = {"gannet", 6};
  static const char long_key[33] = {0};
  static const char long_payload[1001] = {0};

  EXPECT_CODE(GANNET_NOT_FOUND, gannet_get(t, rows, one, &view));
  EXPECT_MESSAGE("'rows', key 1");
  EXPECT(view.data == NULL);
  EXPECT_CODE(GANNET_OK, gannet_insert(t, rows, one, &number, sizeof number));
  EXPECT_CODE(GANNET_ALREADY_EXISTS, gannet_insert(t, rows, one, &number, sizeof number));
  EXPECT_CODE(GANNET_OK, gannet_add(t, rows, one, 0, 2, &sum));
  EXPECT(sum == 42);
  EXPECT_CODE(GANNET_OK, gannet_add(t, rows, one, 0, 0, NULL));
  EXPECT_CODE(GANNET_OUT_OF_RANGE, gannet_add(t, rows, one, 1, 1, &sum));
  EXPECT_CODE(GANNET_OUT_OF_RANGE, gannet_add(t, rows, one, SIZE_MAX, 1, &sum));
  EXPECT_CODE(GANNET_OUT_OF_RANGE, gannet_add(t, rows, one, 0, INT64_MAX, &sum));
  EXPECT_CODE(GANNET_OK, gannet_get_copy(t, rows, one, &number, sizeof number, &size));
  EXPECT(size == 8 && number == 42);
  EXPECT_CODE(GANNET_OK, gannet_exists(t, rows, one, &yes));
  EXPECT(yes);
  EXPECT_CODE(GANNET_OK, gannet_exists(t, rows, gannet_key_signed(-1), &yes));
  EXPECT(!yes);
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_insert(t, rows, gannet_key_integer(2), &number, 7));
  EXPECT_MESSAGE("7 bytes");
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_update(t, rows, one, &number, 4));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_exists(t, rows, text_key("1"), &yes));

  EXPECT_CODE(GANNET_OK, gannet_upsert(t, texts, text_key("bird"), "gull", 4));
  EXPECT_CODE(GANNET_OK, gannet_update_if(t, texts, text_key("bird"), changed, old, &yes));
  EXPECT(!yes);
  EXPECT_CODE(GANNET_OK, gannet_update_if(t, texts, text_key("bird"), old, changed, &yes));
  EXPECT(yes);
  EXPECT_CODE(GANNET_OK, gannet_get(t, texts, text_key("bird"), &view));
  EXPECT(view.size == 6 && memcmp(view.data, "gannet", 6) == 0);
  size = 0;
  EXPECT_CODE(GANNET_OUT_OF_RANGE, gannet_get_copy(t, texts, text_key("bird"), buffer, 5, &size));
  EXPECT(size == 6);
  EXPECT_CODE(GANNET_OK, gannet_update(t, texts, text_key("bird"), "", 0));
  EXPECT_CODE(GANNET_OK, gannet_get_copy(t, texts, text_key("bird"), NULL, 0, &size));
  EXPECT(size == 0);
  EXPECT_CODE(GANNET_OK, gannet_insert(t, texts, text_key("fish"), "eel", 3));
  EXPECT_CODE(GANNET_OK, gannet_insert(t, texts, gannet_key_bytes(NULL, 0), NULL, 0));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_remove(t, texts, gannet_key_bytes("fish", ((size_t)1 << 32) + 4)));
  EXPECT_MESSAGE("too long");
  EXPECT_CODE(GANNET_OK, gannet_remove(t, texts, text_key("fish")));
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_remove(t, texts, text_key("fish")));
  EXPECT_MESSAGE("\"fish\"");
  EXPECT_CODE(GANNET_OK, gannet_validate(t));

  /* Of no row. What is asked for stays as it was. */
  yes = 7;
  sum = 7;
  size = 7;
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_update(t, texts, text_key("fish"), "eel", 3));
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_update_if(t, texts, text_key("fish"), old, changed, &yes));
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_add(t, rows, gannet_key_integer(3), 0, 1, &sum));
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_get_copy(t, texts, text_key("fish"), buffer, sizeof buffer, &size));
  EXPECT(yes == 7 && sum == 7 && size == 7);
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_get(t, texts, gannet_key_bytes(long_key, sizeof long_key), &view));
  EXPECT_MESSAGE("33 bytes");
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_upsert(t, texts, text_key("fish"), long_payload, sizeof long_payload));
  EXPECT_MESSAGE("1001 bytes");
  EXPECT_CODE(GANNET_OK, gannet_validate(t));

  /* Not for the transaction of gannet_run, which ends it itself. */
  EXPECT(!gannet_try_again(t, GANNET_ABORTED));
  gannet_transaction_free(t);

  /* Bad arguments. */
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_get(NULL, rows, one, &view));
  EXPECT_MESSAGE("gannet_get: transaction is NULL");
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_get(t, NULL, one, &view));
  EXPECT_MESSAGE("gannet_get: table is NULL");
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_upsert(t, NULL, one, NULL, 0));
  EXPECT_MESSAGE("gannet_upsert: table is NULL");
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_cursor_next(NULL));
  EXPECT_MESSAGE("gannet_cursor_next: cursor is NULL");
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_cursor_set_range(NULL, NULL, 0, NULL, 0));
  EXPECT_MESSAGE("gannet_cursor_set_range: cursor is NULL");
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_nearest_open(t, NULL, 0, 0, 1, GANNET_CURSOR_READ, NULL));
  EXPECT_MESSAGE("gannet_nearest_open: table is NULL");
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_get(t, rows, one, NULL));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_get_copy(t, rows, one, NULL, 8, &size));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_get_copy(t, rows, one, buffer, 8, NULL));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_upsert(t, texts, text_key("a"), NULL, 3));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_exists(t, rows, one, NULL));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_update_if(t, texts, one, old, changed, NULL));
  return GANNET_OK;
}

static gannet_code return_code(gannet_transaction* t, void* context) {
  (void)t;
  return *(const gannet_code*)context;
}

static gannet_code fail_by_result(gannet_transaction* t, void* context) {
  const struct operations* const tables = context;
  gannet_bytes view;
  const int64_t number = 1;
  const gannet_code code = gannet_insert(t, tables->rows, gannet_key_integer(99), &number, sizeof number);
  if (code != GANNET_OK) return code;
  return gannet_get(t, tables->rows, gannet_key_integer(98), &view);
}

struct ending {
  const gannet_table* rows;
  gannet_code (*end)(gannet_transaction*);
  gannet_code result; /* of the body */
};

static gannet_code end_itself(gannet_transaction* t, void* context) {
  const struct ending* const ending = context;
  const int64_t number = 1;
  int yes = 0;
  EXPECT_CODE(GANNET_OK, gannet_insert(t, ending->rows, gannet_key_integer(99), &number, sizeof number));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, ending->end(t));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_exists(t, ending->rows, gannet_key_integer(99), &yes));
  return ending->result;
}

static gannet_code is_absent(gannet_transaction* t, void* context) {
  const struct operations* const tables = context;
  int yes = 1;
  const gannet_code code = gannet_exists(t, tables->rows, gannet_key_integer(99), &yes);
  EXPECT(!yes);
  return code;
}

static void test_operations(gannet_database* database) {
  struct operations tables;
  const gannet_code own = GANNET_FIRST_OWN_CODE + 5;
  const gannet_code not_found = GANNET_NOT_FOUND;
  const gannet_code bad_codes[] = {GANNET_UNKNOWN, 16, 999, -1};
  size_t i;
  tables.rows = make_table(database, "rows", GANNET_KEY_INTEGER, "hash", 8, 0);
  tables.texts = make_table(database, "texts", GANNET_KEY_BYTES, "hash", 1000, 1);
  EXPECT_CODE(GANNET_OK, gannet_run(database, use_operations, &tables));

  EXPECT_CODE(own, gannet_run(database, return_code, (void*)&own));
  EXPECT(strcmp(gannet_code_name(own), "OWN") == 0);
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_run(database, return_code, (void*)&not_found));
  for (i = 0; i < sizeof bad_codes / sizeof *bad_codes; ++i) {
    EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_run(database, return_code, (void*)&bad_codes[i]));
  }
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_run(database, fail_by_result, &tables));
  EXPECT_MESSAGE("'rows', key 98"); /* the message of the operation */
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_run(database, return_code, (void*)&not_found));
  EXPECT_MESSAGE("the body of gannet_run returned NOT_FOUND"); /* and not that of an earlier call */
  EXPECT_CODE(GANNET_OK, gannet_run(database, is_absent, &tables));
  /* A body that ends its transaction itself, whatever it returns then. */
  for (i = 0; i < 4; ++i) {
    struct ending ending = {NULL, gannet_commit, GANNET_OK};
    ending.rows = tables.rows;
    if (i % 2 == 1) ending.end = gannet_rollback;
    if (i / 2 == 1) ending.result = own;
    EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_run(database, end_itself, &ending));
    EXPECT_MESSAGE(i % 2 == 1 ? "the body called gannet_rollback" : "the body called gannet_commit");
    EXPECT_CODE(GANNET_OK, gannet_run(database, is_absent, &tables));
  }
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_run(database, NULL, NULL));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_run(NULL, is_absent, &tables));
}

/* ---- Transactions by hand ---- */

static void test_by_hand(gannet_database* database) {
  gannet_table* const rows = make_table(database, "by_hand", GANNET_KEY_INTEGER, "xstore", 8, 0);
  gannet_transaction* first = NULL;
  gannet_transaction* second = NULL;
  const gannet_key key = gannet_key_integer(7);
  int64_t number = 5;
  int64_t sum = 0;
  gannet_bytes view;
  int attempts = 0;
  gannet_code code;

  EXPECT_CODE(GANNET_OK, gannet_begin(database, &first));
  EXPECT_CODE(GANNET_OK, gannet_begin(database, &second));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_close(database)); /* they are open */
  EXPECT_MESSAGE("gannet_close: 2 transactions are open; free each of gannet_begin");
  EXPECT_CODE(GANNET_OK, gannet_insert(first, rows, key, &number, sizeof number));
  EXPECT_CODE(GANNET_OK, gannet_rollback(first));
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_get(first, rows, key, &view));
  EXPECT_CODE(GANNET_OK, gannet_rollback(first));
  EXPECT_CODE(GANNET_OK, gannet_insert(first, rows, key, &number, sizeof number));
  EXPECT_CODE(GANNET_OK, gannet_commit(first));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_get(first, rows, key, &view));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_commit(first));
  EXPECT_CODE(GANNET_OK, gannet_rollback(first));

  /* The first reads, and the second changes what it has read: the first is aborted, and succeeds when it tries again.
   */
  do {
    code = gannet_add(first, rows, key, 0, 1, &sum);
    if (attempts++ == 0) {
      EXPECT_CODE(GANNET_OK, gannet_add(second, rows, key, 0, 10, NULL));
      EXPECT_CODE(GANNET_OK, gannet_commit(second));
      EXPECT_CODE(GANNET_ABORTED, gannet_validate(first));
    }
    if (code == GANNET_OK) code = gannet_commit(first);
  } while (gannet_try_again(first, code));
  EXPECT_CODE(GANNET_OK, code);
  EXPECT(attempts == 2);
  EXPECT(sum == 16);
  EXPECT(!gannet_try_again(first, GANNET_NOT_FOUND));
  gannet_transaction_free(first);
  gannet_transaction_free(second);
  gannet_transaction_free(NULL);
}

/* More transactions than gannet_options_set_open_transactions allows: the error names the limit. */
static void test_too_many(void) {
  gannet_options* const options = gannet_options_new();
  gannet_database* database = NULL;
  gannet_transaction* open[2] = {NULL, NULL};
  gannet_transaction* third = NULL;
  gannet_options_set_memory_bytes(options, (uint64_t)64 << 20);
  gannet_options_set_open_transactions(options, 2);
  gannet_options_set_durable_within_milliseconds(options, 10); /* it waits for as long */
  EXPECT_CODE(GANNET_OK, gannet_open(NULL, options, &database));
  EXPECT_CODE(GANNET_OK, gannet_begin(database, &open[0]));
  EXPECT_CODE(GANNET_OK, gannet_begin(database, &open[1]));
  EXPECT_CODE(GANNET_RESOURCE_EXHAUSTED, gannet_begin(database, &third));
  EXPECT_MESSAGE(
      "gannet_begin and gannet_run: all 2 transactions were open for 10ms; raise "
      "gannet_options_set_open_transactions (2)");
  gannet_transaction_free(open[0]);
  EXPECT_CODE(GANNET_OK, gannet_begin(database, &third));
  gannet_transaction_free(third);
  gannet_transaction_free(open[1]);
  EXPECT_CODE(GANNET_OK, gannet_close(database));
  gannet_options_free(options);
}

static gannet_code fill_memory(gannet_transaction* t, void* context) {
  static const char payload[4096] = {0};
  uint64_t key = 0;
  gannet_code code = GANNET_OK;
  for (key = 0; key < 10000 && code == GANNET_OK; ++key) {
    code = gannet_insert(t, context, gannet_key_integer(key), payload, sizeof payload);
  }
  return code;
}

/* A database without a directory, with little of everything. */
static void test_in_memory(void) {
  gannet_options* const options = gannet_options_new();
  gannet_database* database = NULL;
  gannet_table* table = NULL;
  gannet_transaction* t = NULL;
  gannet_bytes view;
  gannet_code code;
  gannet_options_set_memory_bytes(options, (uint64_t)16 << 20);
  gannet_options_set_durable_within_milliseconds(options, 10);
  EXPECT_CODE(GANNET_OK, gannet_open(NULL, options, &database));
  gannet_options_free(options);
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_checkpoint(database));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_backup(database, "/nowhere"));
  EXPECT_CODE(GANNET_OK, gannet_log_health(database));
  EXPECT(gannet_logged_epoch(database) == 0 && gannet_durable_epoch(database) == 0);

  EXPECT_CODE(GANNET_OK, gannet_create_table(database, "rows", NULL, &table));
  EXPECT_CODE(GANNET_RESOURCE_EXHAUSTED, gannet_run(database, fill_memory, table));
  EXPECT_CODE(GANNET_OK, gannet_begin(database, &t));
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_get(t, table, gannet_key_integer(0), &view)); /* it was rolled back */
  EXPECT_CODE(GANNET_DEADLINE_EXCEEDED, gannet_drop_table(database, "rows"));        /* which a transaction may use */
  gannet_transaction_free(t);
  do {
    code = gannet_drop_table(database, "rows");
  } while (code == GANNET_DEADLINE_EXCEEDED); /* the machine may be slow */
  EXPECT_CODE(GANNET_OK, code);
  EXPECT_CODE(GANNET_OK, gannet_close(database));
}

/* ---- Cursors ---- */

static gannet_code fill_letters(gannet_transaction* t, void* context) {
  const gannet_table* const letters = context;
  char letter;
  gannet_code code = GANNET_OK;
  for (letter = 'a'; letter <= 'z' && code == GANNET_OK; ++letter) {
    char key[2];
    key[0] = letter;
    key[1] = letter % 2 == 0 ? '0' : '1';
    code = gannet_upsert(t, letters, gannet_key_bytes(key, 2), &letter, 1);
  }
  return code;
}

/* The first letters of the rows that the moves come to. */
static gannet_code gather(gannet_cursor* rows, gannet_code (*first)(gannet_cursor*),
                          gannet_code (*next)(gannet_cursor*), char* letters) {
  gannet_code code;
  size_t n = 0;
  for (code = first(rows); code == GANNET_OK; code = next(rows)) {
    const gannet_key key = gannet_cursor_key(rows);
    letters[n++] = ((const char*)key.data)[0];
  }
  letters[n] = 0;
  return code == GANNET_NOT_FOUND ? GANNET_OK : code;
}

static gannet_code use_cursors(gannet_transaction* t, void* context) {
  const gannet_table* const table = context;
  gannet_cursor* rows = NULL;
  char letters[64];
  const gannet_key from = text_key("c");
  const gannet_key to = text_key("g1");

  EXPECT_CODE(GANNET_OK, gannet_cursor_open(t, table, GANNET_CURSOR_READ, &rows));
  EXPECT(gannet_cursor_payload(rows).size == 0); /* at no row */
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_cursor_next(rows));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_cursor_previous(rows));
  EXPECT_CODE(GANNET_OK, gather(rows, gannet_cursor_first, gannet_cursor_next, letters));
  EXPECT(strcmp(letters, "abcdefghijklmnopqrstuvwxyz") == 0);
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_cursor_set_prefix(rows, "a", 1)); /* it has moved */
  EXPECT_CODE(GANNET_OK, gannet_cursor_seek_forward(rows, text_key("m")));
  EXPECT(*(const char*)gannet_cursor_payload(rows).data == 'm');
  EXPECT_CODE(GANNET_OK, gannet_cursor_previous(rows));
  EXPECT(*(const char*)gannet_cursor_payload(rows).data == 'l');
  EXPECT_CODE(GANNET_OK, gannet_cursor_seek_backward(rows, text_key("m")));
  EXPECT(*(const char*)gannet_cursor_payload(rows).data == 'l');
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_cursor_seek_forward(rows, text_key("zz")));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_cursor_update(rows, "x", 1));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_cursor_remove(rows));
  gannet_cursor_close(rows);

  EXPECT_CODE(GANNET_OK, gannet_cursor_open(t, table, GANNET_CURSOR_KEYS, &rows));
  EXPECT_CODE(GANNET_OK, gannet_cursor_set_range(rows, &from, 1, &to, 0));
  EXPECT_CODE(GANNET_OK, gather(rows, gannet_cursor_last, gannet_cursor_previous, letters));
  EXPECT(strcmp(letters, "fedc") == 0);
  EXPECT_CODE(GANNET_OK, gannet_cursor_first(rows));
  EXPECT(gannet_cursor_payload(rows).size == 0);
  gannet_cursor_close(rows);

  EXPECT_CODE(GANNET_OK, gannet_cursor_open(t, table, GANNET_CURSOR_READ, &rows));
  EXPECT_CODE(GANNET_OK, gannet_cursor_set_range(rows, NULL, 0, &to, 1));
  EXPECT_CODE(GANNET_OK, gather(rows, gannet_cursor_first, gannet_cursor_next, letters));
  EXPECT(strcmp(letters, "abcdefg") == 0);
  gannet_cursor_close(rows);

  /* Changes through the cursor, which the transaction sees. */
  EXPECT_CODE(GANNET_OK, gannet_cursor_open(t, table, GANNET_CURSOR_UPDATE, &rows));
  EXPECT_CODE(GANNET_OK, gannet_cursor_set_prefix(rows, "b", 1));
  EXPECT_CODE(GANNET_OK, gannet_cursor_first(rows));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_cursor_update(rows, NULL, 4));
  EXPECT_CODE(GANNET_OK, gannet_cursor_update(rows, "beta", 4));
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_cursor_next(rows));
  EXPECT_CODE(GANNET_OK, gannet_cursor_first(rows));
  EXPECT(gannet_cursor_payload(rows).size == 4);
  EXPECT_CODE(GANNET_OK, gannet_cursor_remove(rows));
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_cursor_first(rows));
  gannet_cursor_close(rows);
  gannet_cursor_close(NULL);

  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_cursor_open(t, table, (enum gannet_cursor_mode)9, &rows));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_cursor_first(NULL));
  EXPECT(gannet_cursor_payload(NULL).size == 0);
  return GANNET_OK;
}

static gannet_code open_unordered(gannet_transaction* t, void* context) {
  gannet_cursor* rows = NULL;
  return gannet_cursor_open(t, context, GANNET_CURSOR_READ, &rows);
}

static void test_cursors(gannet_database* database) {
  gannet_table* const letters = make_table(database, "letters", GANNET_KEY_BYTES, "xstore", 8, 1);
  gannet_table* rows = NULL;
  EXPECT_CODE(GANNET_OK, gannet_run(database, fill_letters, letters));
  EXPECT_CODE(GANNET_OK, gannet_run(database, use_cursors, letters));
  EXPECT_CODE(GANNET_OK, gannet_find_table(database, "rows", &rows));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_run(database, open_unordered, rows));
  EXPECT_MESSAGE("hash");
}

/* ---- Tuples ---- */

static void test_tuples(void) {
  gannet_tuple* const tuple = gannet_tuple_new();
  gannet_key rest;
  int64_t number = 0;
  uint64_t large = 0;
  double real = 0;
  int yes = 0;
  char buffer[8];
  size_t size = 0;

  EXPECT(gannet_tuple_key(tuple).number == 0);
  EXPECT_CODE(GANNET_OK, gannet_tuple_add_signed(tuple, -5));
  EXPECT_CODE(GANNET_OK, gannet_tuple_add_unsigned(tuple, UINT64_MAX));
  EXPECT_CODE(GANNET_OK, gannet_tuple_add_double(tuple, 0.5));
  EXPECT_CODE(GANNET_OK, gannet_tuple_add_bool(tuple, 7));
  EXPECT_CODE(GANNET_OK, gannet_tuple_add_bytes(tuple, "a\0b", 3));
  EXPECT_CODE(GANNET_OK, gannet_tuple_add_bytes(tuple, NULL, 0));

  rest = gannet_tuple_key(tuple);
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_tuple_read_double(&rest, &real));    /* another type */
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_tuple_read_unsigned(&rest, &large)); /* it does not fit */
  EXPECT_CODE(GANNET_OK, gannet_tuple_read_signed(&rest, &number));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_tuple_read_signed(&rest, &number));
  EXPECT_CODE(GANNET_OK, gannet_tuple_read_unsigned(&rest, &large));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_tuple_read_bool(&rest, &yes));
  EXPECT_CODE(GANNET_OK, gannet_tuple_read_double(&rest, &real));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_tuple_read_bytes(&rest, buffer, sizeof buffer, &size));
  EXPECT_CODE(GANNET_OK, gannet_tuple_read_bool(&rest, &yes));
  EXPECT(number == -5 && large == UINT64_MAX && real == 0.5 && yes == 1);
  EXPECT_CODE(GANNET_OUT_OF_RANGE, gannet_tuple_read_bytes(&rest, buffer, 2, &size));
  EXPECT(size == 3);
  EXPECT_CODE(GANNET_OK, gannet_tuple_read_bytes(&rest, buffer, sizeof buffer, &size));
  EXPECT(size == 3 && memcmp(buffer, "a\0b", 3) == 0);
  EXPECT_CODE(GANNET_OK, gannet_tuple_read_bytes(&rest, NULL, 0, &size));
  EXPECT(size == 0 && rest.number == 0);
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_tuple_read_signed(&rest, &number)); /* no further field */

  gannet_tuple_clear(tuple);
  EXPECT(gannet_tuple_key(tuple).number == 0);
  rest = gannet_key_integer(7);
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_tuple_read_signed(&rest, &number));
  EXPECT_MESSAGE("gannet_tuple_read_signed: the integer 7 is no tuple");
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_tuple_read_signed(NULL, &number));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_tuple_read_bool(&rest, NULL));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_tuple_read_bytes(&rest, NULL, 1, &size));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_tuple_add_bytes(tuple, NULL, 1));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_tuple_add_signed(NULL, 1));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_tuple_add_unsigned(NULL, 1));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_tuple_add_double(NULL, 1));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_tuple_add_bool(NULL, 1));
  EXPECT(gannet_tuple_key(NULL).number == 0);
  gannet_tuple_clear(NULL);
  gannet_tuple_free(tuple);
  gannet_tuple_free(NULL);
}

/* ---- Secondary indexes ---- */

struct person {
  char mail[16];
  int32_t born;
  uint32_t city;
};

struct people {
  const gannet_table* table;
  const gannet_index* by_mail; /* unique */
  const gannet_index* by_city; /* the city, then the year */
};

static gannet_code put_person(gannet_transaction* t, const gannet_table* people, uint64_t id, const char* mail,
                              int32_t born, uint32_t city) {
  struct person person;
  memset(&person, 0, sizeof person);
  snprintf(person.mail, sizeof person.mail, "%s", mail);
  person.born = born;
  person.city = city;
  return gannet_upsert(t, people, gannet_key_integer(id), &person, sizeof person);
}

static gannet_code fill_people(gannet_transaction* t, void* context) {
  const gannet_table* const people = context;
  EXPECT_CODE(GANNET_OK, put_person(t, people, 1, "ann", 1980, 7));
  EXPECT_CODE(GANNET_OK, put_person(t, people, 2, "bob", -20, 7));
  EXPECT_CODE(GANNET_OK, put_person(t, people, 3, "cleo", 1990, 3));
  return GANNET_OK;
}

/* The rows' own keys, as digits. */
static gannet_code gather_people(gannet_cursor* rows, gannet_code (*first)(gannet_cursor*),
                                 gannet_code (*next)(gannet_cursor*), char* digits) {
  gannet_code code;
  size_t n = 0;
  for (code = first(rows); code == GANNET_OK; code = next(rows)) {
    digits[n++] = (char)('0' + gannet_cursor_key(rows).number);
  }
  digits[n] = 0;
  return code == GANNET_NOT_FOUND ? GANNET_OK : code;
}

static gannet_code use_indexes(gannet_transaction* t, void* context) {
  const struct people* const people = context;
  gannet_tuple* const tuple = gannet_tuple_new();
  gannet_cursor* rows = NULL;
  gannet_key key;
  gannet_key from;
  gannet_bytes payload = {NULL, 0};
  struct person person;
  char digits[16];
  uint64_t city = 0;
  int64_t born = 0;

  gannet_tuple_add_bytes(tuple, "ann", 3);
  EXPECT_CODE(GANNET_OK, gannet_get_by(t, people->by_mail, gannet_tuple_key(tuple), &key, &payload));
  EXPECT(key.data == NULL && key.number == 1);
  EXPECT(payload.size == sizeof person && strcmp(payload.data, "ann") == 0);
  EXPECT_CODE(GANNET_OK, gannet_get_by(t, people->by_mail, gannet_tuple_key(tuple), NULL, NULL));
  gannet_tuple_clear(tuple);
  gannet_tuple_add_bytes(tuple, "dan", 3);
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_get_by(t, people->by_mail, gannet_tuple_key(tuple), &key, &payload));
  EXPECT_MESSAGE("by_mail");
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_get_by(t, people->by_mail, gannet_key_integer(5), &key, &payload));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_get_by(t, people->by_city, gannet_key_integer(5), &key, &payload));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_get_by(NULL, people->by_mail, key, &key, &payload));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_get_by(t, NULL, key, &key, &payload));

  EXPECT_CODE(GANNET_OK, gannet_index_cursor_open(t, people->by_city, GANNET_CURSOR_READ, &rows));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_cursor_index_key(rows, &key)); /* at no row */
  EXPECT_CODE(GANNET_OK, gather_people(rows, gannet_cursor_first, gannet_cursor_next, digits));
  EXPECT(strcmp(digits, "321") == 0);
  EXPECT_CODE(GANNET_OK, gather_people(rows, gannet_cursor_last, gannet_cursor_previous, digits));
  EXPECT(strcmp(digits, "123") == 0);
  EXPECT_CODE(GANNET_OK, gannet_cursor_seek_forward(rows, gannet_key_integer(4)));
  EXPECT(gannet_cursor_key(rows).number == 2);
  memcpy(&person, gannet_cursor_payload(rows).data, sizeof person);
  EXPECT(person.born == -20);
  EXPECT_CODE(GANNET_OK, gannet_cursor_index_key(rows, &key));
  EXPECT_CODE(GANNET_OK, gannet_tuple_read_unsigned(&key, &city));
  EXPECT_CODE(GANNET_OK, gannet_tuple_read_signed(&key, &born));
  EXPECT(city == 7 && born == -20 && key.number == 0);
  EXPECT_CODE(GANNET_OK, gannet_cursor_seek_backward(rows, gannet_key_integer(4)));
  EXPECT(gannet_cursor_key(rows).number == 3);
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_cursor_seek_forward(rows, gannet_key_integer(8)));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_cursor_seek_forward(rows, text_key("city")));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_cursor_set_prefix(rows, "a", 1)); /* it has moved */
  gannet_cursor_close(rows);

  /* A range, and changes of the rows that it meets. */
  gannet_tuple_clear(tuple);
  gannet_tuple_add_unsigned(tuple, 7);
  gannet_tuple_add_signed(tuple, 0);
  from = gannet_tuple_key(tuple);
  EXPECT_CODE(GANNET_OK, gannet_index_cursor_open(t, people->by_city, GANNET_CURSOR_UPDATE, &rows));
  EXPECT_CODE(GANNET_OK, gannet_cursor_set_range(rows, &from, 1, NULL, 0));
  EXPECT_CODE(GANNET_OK, gannet_cursor_first(rows));
  EXPECT(gannet_cursor_key(rows).number == 1);
  memcpy(&person, gannet_cursor_payload(rows).data, sizeof person);
  person.city = 9;
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_cursor_update(rows, &person, 4));
  EXPECT_CODE(GANNET_OK, gannet_cursor_update(rows, &person, sizeof person));
  EXPECT_CODE(GANNET_OK, gannet_cursor_next(rows)); /* the same row, which has moved forward */
  EXPECT(gannet_cursor_key(rows).number == 1);
  EXPECT_CODE(GANNET_OK, gannet_cursor_remove(rows));
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_cursor_next(rows));
  gannet_cursor_close(rows);
  EXPECT_CODE(GANNET_OK, gannet_index_cursor_open(t, people->by_mail, GANNET_CURSOR_KEYS, &rows));
  EXPECT_CODE(GANNET_OK, gather_people(rows, gannet_cursor_first, gannet_cursor_next, digits));
  EXPECT(strcmp(digits, "23") == 0);
  gannet_cursor_close(rows);

  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_index_cursor_open(t, people->by_city, (enum gannet_cursor_mode)9, &rows));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_index_cursor_open(NULL, people->by_city, GANNET_CURSOR_READ, &rows));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_index_cursor_open(t, NULL, GANNET_CURSOR_READ, &rows));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_index_cursor_open(t, people->by_city, GANNET_CURSOR_READ, NULL));
  EXPECT_CODE(GANNET_OK, gannet_cursor_open(t, people->table, GANNET_CURSOR_READ, &rows));
  EXPECT_CODE(GANNET_OK, gannet_cursor_first(rows));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_cursor_index_key(rows, &key)); /* not of an index */
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_cursor_index_key(rows, NULL));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_cursor_index_key(NULL, &key));
  gannet_cursor_close(rows);
  gannet_tuple_free(tuple);
  return GANNET_OK;
}

/* The transaction itself has given the mail to two rows. */
static gannet_code share_mail(gannet_transaction* t, void* context) {
  const struct people* const people = context;
  gannet_tuple* const tuple = gannet_tuple_new();
  gannet_key key = gannet_key_integer(77);
  gannet_bytes payload = {NULL, 77};
  gannet_code code;
  EXPECT_CODE(GANNET_OK, put_person(t, people->table, 8, "hal", 2000, 1));
  EXPECT_CODE(GANNET_OK, put_person(t, people->table, 9, "hal", 2000, 1));
  gannet_tuple_add_bytes(tuple, "hal", 3);
  code = gannet_get_by(t, people->by_mail, gannet_tuple_key(tuple), &key, &payload);
  EXPECT(key.number == 77 && payload.size == 77);
  gannet_tuple_free(tuple);
  return code;
}

static gannet_code steal_mail(gannet_transaction* t, void* context) {
  return put_person(t, context, 4, "bob", 2000, 1);
}

static gannet_index* make_index(gannet_database* database, const char* name, const gannet_table* people,
                                const gannet_index_options* options) {
  gannet_index* index = NULL;
  EXPECT_CODE(GANNET_OK, gannet_create_index(database, name, people, options, &index));
  if (index == NULL) exit(1);
  return index;
}

static void test_indexes(gannet_database* database) {
  gannet_index_options* const mail = gannet_index_options_new();
  gannet_index_options* const city = gannet_index_options_new();
  gannet_index_options* const wrong = gannet_index_options_new();
  gannet_transaction* open = NULL;
  gannet_index* found = NULL;
  const gannet_table* gone = NULL;
  gannet_table* const table = make_table(database, "people", GANNET_KEY_INTEGER, "xstore", sizeof(struct person), 0);
  struct people people = {NULL, NULL, NULL};
  people.table = table;
  gannet_index_options_set_unique(mail, 1);
  gannet_index_options_add_field(mail, GANNET_FIELD_TEXT, offsetof(struct person, mail),
                                 sizeof(((struct person*)0)->mail));
  gannet_index_options_add_field(city, GANNET_FIELD_UNSIGNED, offsetof(struct person, city), 4);
  gannet_index_options_add_field(city, GANNET_FIELD_SIGNED, offsetof(struct person, born), 4);

  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_create_index(database, "by_none", table, wrong, &found)); /* no field */
  gannet_index_options_add_field(wrong, GANNET_FIELD_UNSIGNED, SIZE_MAX, 4);
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_create_index(database, "by_none", table, wrong, &found));
  gannet_index_options_add_field(wrong, (enum gannet_field_type)256, 0, 4);
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_create_index(database, "by_none", table, wrong, &found));
  EXPECT_MESSAGE("gannet_field_type");
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_create_index(NULL, "by_none", table, mail, &found));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_create_index(database, NULL, table, mail, &found));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_create_index(database, "by_none", NULL, mail, &found));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_create_index(database, "by_none", table, NULL, &found));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_create_index(database, "by_none", table, mail, NULL));

  /* One before there are rows, and one of the rows that there are, while a transaction is open. */
  people.by_mail = make_index(database, "by_mail", table, mail);
  EXPECT_CODE(GANNET_OK, gannet_run(database, fill_people, table));
  gannet_index_options_set_wait_milliseconds(city, 1);
  EXPECT_CODE(GANNET_OK, gannet_begin(database, &open));
  EXPECT_CODE(GANNET_OK, put_person(open, table, 5, "eve", 1, 1));
  EXPECT_CODE(GANNET_DEADLINE_EXCEEDED, gannet_create_index(database, "by_city", table, city, &found));
  gannet_transaction_free(open);
  gannet_index_options_set_wait_milliseconds(city, UINT64_MAX);
  people.by_city = make_index(database, "by_city", table, city);

  EXPECT(strcmp(gannet_index_name(people.by_city), "by_city") == 0);
  EXPECT(gannet_index_table(people.by_city) == table);
  EXPECT(gannet_index_is_unique(people.by_mail) && !gannet_index_is_unique(people.by_city));
  EXPECT_CODE(GANNET_OK, gannet_find_index(database, "by_mail", &found));
  EXPECT(found == people.by_mail);
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_find_index(database, "people", &found));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_find_index(NULL, "by_mail", &found));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_find_index(database, NULL, &found));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_find_index(database, "by_mail", NULL));
  EXPECT_CODE(GANNET_ALREADY_EXISTS, gannet_create_index(database, "by_mail", table, mail, &found));
  EXPECT(strcmp(gannet_index_name(NULL), "") == 0 && gannet_index_table(NULL) == NULL && !gannet_index_is_unique(NULL));

  EXPECT_CODE(GANNET_ALREADY_EXISTS, gannet_run(database, steal_mail, table));
  EXPECT_MESSAGE("bob");
  EXPECT_CODE(GANNET_ALREADY_EXISTS, gannet_run(database, share_mail, &people));
  EXPECT_CODE(GANNET_OK, gannet_run(database, use_indexes, &people));

  /* The handle of a table that was dropped does not stand for another one of its name. */
  gone = make_table(database, "gone", GANNET_KEY_INTEGER, "xstore", sizeof(struct person), 0);
  EXPECT_CODE(GANNET_OK, gannet_drop_table(database, "gone"));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_create_index(database, "by_none", gone, city, &found));
  make_table(database, "gone", GANNET_KEY_INTEGER, "xstore", sizeof(struct person), 0);
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_create_index(database, "by_none", gone, city, &found));
  EXPECT_MESSAGE("table 'gone' has been dropped");
  EXPECT_CODE(GANNET_OK, gannet_drop_table(database, "gone"));

  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_drop_table(database, "people"));
  EXPECT_CODE(GANNET_OK, gannet_drop_table(database, "by_city"));
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_find_index(database, "by_city", &found));
  gannet_index_options_free(mail);
  gannet_index_options_free(city);
  gannet_index_options_free(wrong);
  gannet_index_options_free(NULL);
  gannet_index_options_set_unique(NULL, 1);
  gannet_index_options_add_field(NULL, GANNET_FIELD_TEXT, 0, 0);
  gannet_index_options_add_key_field(NULL, GANNET_FIELD_TEXT, 0, 0);
  gannet_index_options_set_wait_milliseconds(NULL, 1);
}

/* Later runs find the index in the directory. */
static void test_kept_indexes(gannet_database* database) {
  gannet_index_options* const options = gannet_index_options_new();
  gannet_table* table = NULL;
  struct people people = {NULL, NULL, NULL};
  gannet_index* by_mail = NULL;
  EXPECT_CODE(GANNET_OK, gannet_find_table(database, "people", &table));
  gannet_index_options_add_key_field(options, GANNET_FIELD_SIGNED, 0, 8);
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_create_index(database, "by_mail", table, options, &by_mail));
  EXPECT_CODE(GANNET_OK, gannet_create_index(database, "by_number", table, options, &by_mail));
  EXPECT_CODE(GANNET_OK, gannet_find_index(database, "by_mail", &by_mail));
  gannet_index_options_free(options);
  people.by_mail = by_mail;
  EXPECT(gannet_index_is_unique(people.by_mail));
}

/* ---- Forked children ---- */

/* All that a child does with the database of its parent is refused. Returns the number of failures. */
static int use_in_child(gannet_database* database, gannet_table* table, gannet_transaction* open) {
  gannet_table* other = NULL;
  gannet_index* index = NULL;
  gannet_transaction* t = NULL;
  gannet_index_options* const options = gannet_index_options_new();
  failures = 0;
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_commit(open));
  EXPECT_MESSAGE("this database was opened by process ");
  EXPECT_MESSAGE("; open it after fork");
  gannet_transaction_free(open);
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_begin(database, &t));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_run(database, fill_people, table));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_checkpoint(database));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_backup(database, "/nowhere"));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_create_table(database, "other", NULL, &other));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_rename_table(database, "people", "persons"));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_drop_table(database, "people"));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_widen_table(database, "people", 100));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_arrange_table(database, "people"));
  gannet_index_options_add_field(options, GANNET_FIELD_SIGNED, 0, 4);
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_create_index(database, "by_any", table, options, &index));
  gannet_index_options_free(options);
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_log_health(database));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_close(database));
  return failures;
}

static gannet_code read_person(gannet_transaction* t, void* context) {
  gannet_bytes payload;
  return gannet_get(t, context, gannet_key_integer(6), &payload);
}

/* Closes the database, and opens it again while its child lives. */
static gannet_database* test_fork(gannet_database* database, const char* directory) {
  gannet_table* table = NULL;
  gannet_transaction* open = NULL;
  int control[2];
  int ready[2];
  int status = -1;
  char byte = 0;
  pid_t child;
  EXPECT_CODE(GANNET_OK, gannet_find_table(database, "people", &table));
  EXPECT_CODE(GANNET_OK, gannet_begin(database, &open));
  EXPECT_CODE(GANNET_OK, put_person(open, table, 6, "fay", 2001, 2));
  EXPECT(pipe(control) == 0 && pipe(ready) == 0);
  fflush(NULL);
  child = fork();
  if (child == 0) {
    const int result = use_in_child(database, table, open) == 0 ? 0 : 1;
    close(control[1]);
    if (write(ready[1], &byte, 1) != 1) _exit(2);
    _exit(read(control[0], &byte, 1) == 0 ? result : 3); /* lives until the parent ends that */
  }
  EXPECT(child > 0);
  EXPECT(read(ready[0], &byte, 1) == 1);
  EXPECT_CODE(GANNET_OK, gannet_commit(open));
  gannet_transaction_free(open);
  EXPECT_CODE(GANNET_OK, gannet_close(database));
  database = open_database(directory, 0);
  EXPECT_CODE(GANNET_OK, gannet_find_table(database, "people", &table));
  EXPECT_CODE(GANNET_OK, gannet_run(database, read_person, table));
  close(control[1]);
  EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  close(control[0]);
  close(ready[0]);
  close(ready[1]);
  return database;
}

/* ---- Rectangles ---- */

static gannet_code use_rectangles(gannet_transaction* t, void* context) {
  const gannet_table* const taxis = context;
  gannet_cursor* found = NULL;
  gannet_rectangle box;
  uint64_t id;
  char bytes[GANNET_RECTANGLE_KEY_BYTES];
  const gannet_rectangle window = {0.5, 0.5, 2.5, 2.5};
  const gannet_rectangle wrong = {2, 0, 1, 0};
  int n = 0;
  gannet_code code;

  for (id = 0; id < 5; ++id) {
    box.min_x = box.min_y = box.max_x = box.max_y = (double)id;
    EXPECT_CODE(GANNET_OK, gannet_encode_rectangle(&box, id, bytes));
    EXPECT_CODE(GANNET_OK, gannet_upsert(t, taxis, gannet_key_bytes(bytes, sizeof bytes), &id, sizeof id));
  }
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_encode_rectangle(&wrong, 0, bytes));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_decode_rectangle(text_key("short"), &box, &id));

  EXPECT_CODE(GANNET_OK, gannet_search_open(t, taxis, &window, GANNET_CURSOR_READ, &found));
  for (code = gannet_cursor_first(found); code == GANNET_OK; code = gannet_cursor_next(found)) {
    ++n;
    EXPECT_CODE(GANNET_OK, gannet_decode_rectangle(gannet_cursor_key(found), &box, &id));
    EXPECT(id == (uint64_t)n && box.min_x == n);
  }
  EXPECT_CODE(GANNET_NOT_FOUND, code);
  EXPECT(n == 2);
  EXPECT_CODE(GANNET_OK, gannet_cursor_last(found));
  EXPECT_CODE(GANNET_OK, gannet_cursor_previous(found));
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_cursor_previous(found));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_cursor_seek_forward(found, text_key("x")));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_cursor_seek_backward(found, text_key("x")));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_cursor_set_range(found, NULL, 0, NULL, 0));
  gannet_cursor_close(found);

  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_search_open(t, taxis, &wrong, GANNET_CURSOR_READ, &found));
  EXPECT_CODE(GANNET_OK, gannet_nearest_open(t, taxis, 3.9, 3.9, 1, GANNET_CURSOR_UPDATE, &found));
  EXPECT_CODE(GANNET_OK, gannet_cursor_first(found));
  EXPECT(*(const uint64_t*)gannet_cursor_payload(found).data == 4);
  EXPECT_CODE(GANNET_OK, gannet_cursor_remove(found));
  gannet_cursor_close(found);
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_cursor_open(t, taxis, GANNET_CURSOR_READ, &found));
  return GANNET_OK;
}

/* ---- Threads ---- */

struct counting {
  gannet_database* database;
  const gannet_table* table;
};

static gannet_code count_one(gannet_transaction* t, void* context) {
  const gannet_code code = gannet_add(t, context, gannet_key_integer(0), 0, 1, NULL);
  const int64_t one = 1;
  return code == GANNET_NOT_FOUND ? gannet_insert(t, context, gannet_key_integer(0), &one, sizeof one) : code;
}

static void* count_in_thread(void* context) {
  const struct counting* const counting = context;
  int i;
  for (i = 0; i < 200; ++i) {
    gannet_code code;
    /* Two threads may insert the first row: the loser's commit says so, and its next try adds. */
    do {
      code = gannet_run(counting->database, count_one, (void*)counting->table);
    } while (code == GANNET_ALREADY_EXISTS);
    EXPECT_CODE(GANNET_OK, code);
  }
  return NULL;
}

static gannet_code read_count(gannet_transaction* t, void* context) {
  int64_t count = 0;
  size_t size = 0;
  const gannet_code code = gannet_get_copy(t, context, gannet_key_integer(0), &count, sizeof count, &size);
  EXPECT(count == 800);
  return code;
}

static void test_threads(gannet_database* database) {
  struct counting counting;
  pthread_t threads[4];
  int i;
  counting.database = database;
  counting.table = make_table(database, "counts", GANNET_KEY_INTEGER, "hash", 8, 0);
  for (i = 0; i < 4; ++i) EXPECT(pthread_create(&threads[i], NULL, count_in_thread, &counting) == 0);
  for (i = 0; i < 4; ++i) EXPECT(pthread_join(threads[i], NULL) == 0);
  EXPECT_CODE(GANNET_OK, gannet_run(database, read_count, (void*)counting.table));
}

/* ---- Directories ---- */

static gannet_code has_bird(gannet_transaction* t, void* context) {
  int yes = 0;
  const gannet_code code = gannet_exists(t, context, text_key("bird"), &yes);
  EXPECT(yes);
  return code;
}

static void test_open_errors(const char* directory) {
  gannet_database* database = NULL;
  gannet_options* const options = gannet_options_new();
  char missing[4096];
  snprintf(missing, sizeof missing, "%s/none", directory);
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_open(missing, NULL, &database));
  EXPECT_MESSAGE("or call gannet_options_set_create_if_missing(options, 1) to create it there");
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_open("", NULL, &database));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_open(missing, NULL, NULL));
  gannet_options_set_durability(options, (enum gannet_durability)256);
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_open(NULL, options, &database));
  EXPECT_MESSAGE("durability");
  gannet_options_set_durability(options, GANNET_DURABILITY_ASYNC);
  gannet_options_set_open_transactions(options, 0);
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_open(NULL, options, &database));
  EXPECT_MESSAGE("gannet_options_set_open_transactions is 0");
  gannet_options_free(options);
  gannet_options_free(NULL);
  gannet_table_options_free(NULL);
  EXPECT(database == NULL);
  EXPECT_CODE(GANNET_OK, gannet_close(NULL));
  EXPECT(gannet_durable_epoch(NULL) == 0 && gannet_logged_epoch(NULL) == 0);
}

/* What the options say is too much or too little is refused before anything is made. */
static void test_bad_options(const char* directory) {
  gannet_database* database = NULL;
  gannet_options* options = NULL;
  char text[5000];
  int i;
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = 0;
  for (i = 0; i < 7; ++i) {
    const char* const says[] = {"memory_bytes",      "recovery_threads", "4096",        "largest_transaction_bytes",
                                "open_transactions", "durable_within",   "group_commit"};
    options = gannet_options_new();
    gannet_options_set_create_if_missing(options, 1);
    if (i == 0) gannet_options_set_memory_bytes(options, 1);
    if (i == 1) gannet_options_set_recovery_threads(options, 0);
    if (i == 2) gannet_options_set_application(options, text);
    if (i == 3) gannet_options_set_largest_transaction_bytes(options, UINT64_MAX);
    if (i == 4) gannet_options_set_open_transactions(options, -1);
    if (i == 5) gannet_options_set_durable_within_milliseconds(options, 0);
    if (i == 6) gannet_options_set_group_commit_microseconds(options, UINT64_MAX);
    EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_open(directory, options, &database));
    EXPECT_MESSAGE(says[i]);
    gannet_options_free(options);
  }
  EXPECT(database == NULL);
  EXPECT_CODE(GANNET_NOT_FOUND, gannet_open(directory, NULL, &database)); /* nothing was made there */
}

static gannet_code put_one(gannet_transaction* t, void* context) {
  return gannet_upsert(t, context, gannet_key_integer(1), "one", 3);
}

static gannet_code has_one(gannet_transaction* t, void* context) {
  gannet_bytes payload;
  return gannet_get(t, context, gannet_key_integer(1), &payload);
}

/* Without a log, with automatic checkpoints: what gannet_close wrote is there. The directory has one user at a time. */
static void test_without_log(const char* directory) {
  gannet_options* const options = gannet_options_new();
  gannet_database* database = NULL;
  gannet_database* second = NULL;
  gannet_table* table = NULL;
  gannet_options_set_create_if_missing(options, 1);
  gannet_options_set_durability(options, GANNET_DURABILITY_NONE);
  gannet_options_set_checkpoint_every_milliseconds(options, UINT64_MAX);
  gannet_options_set_durable_within_milliseconds(options, UINT64_MAX);
  EXPECT_CODE(GANNET_OK, gannet_open(directory, options, &database));
  EXPECT_CODE(GANNET_FAILED_PRECONDITION, gannet_open(directory, options, &second));
  EXPECT_MESSAGE(directory);
  EXPECT(second == NULL);
  EXPECT_CODE(GANNET_OK, gannet_create_table(database, "rows", NULL, &table));
  EXPECT_CODE(GANNET_OK, gannet_run(database, put_one, table));
  EXPECT(gannet_logged_epoch(database) == 0);
  EXPECT_CODE(GANNET_OK, gannet_close(database));
  EXPECT_CODE(GANNET_OK, gannet_open(directory, options, &database));
  EXPECT_CODE(GANNET_OK, gannet_find_table(database, "rows", &table));
  EXPECT_CODE(GANNET_OK, gannet_run(database, has_one, table));
  EXPECT_CODE(GANNET_OK, gannet_close(database));
  gannet_options_free(options);
}

/* ---- Events and metrics ---- */

struct events {
  pthread_mutex_t mutex;
  int count[3];
  char recovered[200]; /* the text that told of recovery */
};

static void note_event(void* context, enum gannet_event_level level, const char* text) {
  struct events* const events = context;
  pthread_mutex_lock(&events->mutex);
  if (level <= GANNET_EVENT_ERROR) ++events->count[level];
  if (strstr(text, "recovered") != NULL) snprintf(events->recovered, sizeof events->recovered, "%s", text);
  pthread_mutex_unlock(&events->mutex);
}

/* The directory has rows. */
static void test_events(const char* directory) {
  struct events events = {PTHREAD_MUTEX_INITIALIZER, {0, 0, 0}, ""};
  gannet_options* options = gannet_options_new();
  gannet_database* database = NULL;
  gannet_options_set_on_event(options, note_event, &events);
  EXPECT_CODE(GANNET_OK, gannet_open(directory, options, &database));
  EXPECT_CODE(GANNET_OK, gannet_close(database));
  EXPECT(events.count[GANNET_EVENT_INFO] == 1 && events.count[GANNET_EVENT_WARNING] == 0 &&
         events.count[GANNET_EVENT_ERROR] == 0);
  EXPECT(strstr(events.recovered, directory) != NULL);

  /* Nobody is told any more. */
  gannet_options_set_on_event(options, NULL, &events);
  EXPECT_CODE(GANNET_OK, gannet_open(directory, options, &database));
  EXPECT_CODE(GANNET_OK, gannet_close(database));
  EXPECT(events.count[GANNET_EVENT_INFO] == 1);
  gannet_options_free(options);
}

/* The directory has rows, and no other database uses it any more. */
static void test_salvage(const char* directory) {
  struct events events = {PTHREAD_MUTEX_INITIALIZER, {0, 0, 0}, ""};
  gannet_options* options = gannet_options_new();
  gannet_database* database = NULL;
  gannet_table* table = NULL;
  char path[4096];
  FILE* file;
  snprintf(path, sizeof path, "%s/LOG-END", directory);
  file = fopen(path, "wb");
  EXPECT(file != NULL && fclose(file) == 0);
  gannet_options_set_on_event(options, note_event, &events);
  EXPECT_CODE(GANNET_DATA_LOSS, gannet_open(directory, options, &database));
  EXPECT_MESSAGE("--salvage");
  gannet_options_set_salvage(options, 1);
  EXPECT_CODE(GANNET_OK, gannet_open(directory, options, &database));
  EXPECT(events.count[GANNET_EVENT_WARNING] == 1);
  EXPECT_CODE(GANNET_OK, gannet_find_table(database, "texts", &table));
  if (table != NULL) EXPECT_CODE(GANNET_OK, gannet_run(database, has_bird, table));
  EXPECT_CODE(GANNET_OK, gannet_close(database));
  gannet_options_free(options);
}

static void test_metrics(gannet_database* database) {
  const char* text = NULL;
  EXPECT_CODE(GANNET_OK, gannet_metrics(database, &text));
  EXPECT(text != NULL && strstr(text, "# TYPE gannet_log_transactions_total counter\n") != NULL);
  EXPECT(text != NULL && strstr(text, "\ngannet_log_healthy 1\n") != NULL);
  EXPECT(text != NULL && strstr(text, "\ngannet_registered_memory_bytes{kind=\"capacity\"} 268435456\n") != NULL);
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_metrics(NULL, &text));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_metrics(database, NULL));
}

int main(int argc, char** argv) {
  gannet_database* database;
  gannet_table* table = NULL;
  char directory[4000];
  char copy[4000];
  if (argc != 2) {
    fprintf(stderr, "usage: c_test DIRECTORY\n");
    return 2;
  }
  snprintf(directory, sizeof directory, "%s/database", argv[1]);
  EXPECT(strlen(gannet_version()) > 0);
  test_codes();
  test_no_handles();
  test_messages();
  test_open_errors(argv[1]);
  snprintf(copy, sizeof copy, "%s/bad", argv[1]);
  test_bad_options(copy);
  snprintf(copy, sizeof copy, "%s/without-log", argv[1]);
  test_without_log(copy);
  test_too_many();
  test_in_memory();

  database = open_database(directory, 1);
  test_tables(database);
  test_operations(database);
  test_by_hand(database);
  test_cursors(database);
  test_tuples();
  test_indexes(database);
  test_threads(database);
  EXPECT_CODE(GANNET_OK,
              gannet_run(database, use_rectangles, make_table(database, "taxis", GANNET_KEY_BYTES, "catfish", 8, 0)));
  EXPECT_CODE(GANNET_OK, gannet_checkpoint(database));
  snprintf(copy, sizeof copy, "%s/copy", argv[1]);
  EXPECT_CODE(GANNET_OK, gannet_backup(database, copy));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_backup(database, copy));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_backup(database, NULL));
  EXPECT_CODE(GANNET_INVALID_ARGUMENT, gannet_backup(NULL, copy));
  EXPECT_CODE(GANNET_OK, gannet_log_health(database));
  EXPECT(gannet_logged_epoch(database) > 0);
  EXPECT(gannet_durable_epoch(database) > 0);
  test_metrics(database);
  EXPECT_CODE(GANNET_OK, gannet_close(database));
  test_events(directory);

  /* Again, without creating anything: the directory says what there is. */
  database = open_database(directory, 0);
  EXPECT(gannet_table_count(database) == 9); /* a secondary index is one, too */
  EXPECT_CODE(GANNET_OK, gannet_find_table(database, "texts", &table));
  if (table != NULL) EXPECT_CODE(GANNET_OK, gannet_run(database, has_bird, table));
  test_kept_indexes(database);
  database = test_fork(database, directory);
  EXPECT_CODE(GANNET_OK, gannet_close(database));

  /* The backup has the same. */
  database = open_database(copy, 0);
  EXPECT(gannet_table_count(database) == 9);
  EXPECT_CODE(GANNET_OK, gannet_close(database));
  test_salvage(copy);

  if (failures == 0) printf("all of the C interface works\n");
  return failures == 0 ? 0 : 1;
}
