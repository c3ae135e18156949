/* gannet.h: the C interface of Gannet, a transactional storage engine. For programs in C, and for bindings of other
 * languages. A program includes this file alone, and links with -lgannet.
 *
 *   gannet_database* database;
 *   gannet_options* options = gannet_options_new();
 *   gannet_options_set_create_if_missing(options, 1);
 *   gannet_code code = gannet_open("/var/lib/bank", options, &database);
 *   gannet_options_free(options);
 *   if (code != GANNET_OK) { fprintf(stderr, "%s\n", gannet_message()); ... }
 *
 * Results. Every function that can fail returns a gannet_code. gannet_message() then has the text that says what to do.
 * The numbers of the codes never change. Output arguments are written only with GANNET_OK, unless the function says
 * otherwise. Null pointers and unknown numbers are GANNET_INVALID_ARGUMENT; with NULL for a handle, functions that
 * return no code do nothing, and return 0, NULL or "". No function throws.
 *
 * Handles (gannet_database and so on) are opaque. A caller that has got one from a function that opens or makes it
 * gives it to the function that closes or frees it; these accept NULL. Memory that a function returns belongs to the
 * library, and is valid as long as the function says.
 *
 * Threads. A database and its tables may be used by any number of threads; a transaction and its cursors by one at a
 * time. Options are used by one thread at a time.
 *
 * Processes. A database belongs to the process that opened it. In a child of fork, functions that begin, commit or
 * change something, and gannet_close, return GANNET_FAILED_PRECONDITION, and what was opened before the fork must not
 * be used otherwise. A child that needs a database opens one itself, when its parent has closed its own. The parent
 * notices nothing, and gannet_close in the parent frees the directory, also if children live on.
 *
 * Transactions are serializable. A read that meets a concurrent change, and a commit that does, return GANNET_ABORTED.
 * The transaction is then to be run again, from its beginning: gannet_run does that by itself, and gannet_try_again
 * helps a program that begins and commits its transactions itself.
 *
 * Stability. Structs that this file defines, numbers and signatures do not change within a major version of the shared
 * library (libgannet.so.N); functions are only added. A function of a later version has a comment that names it.
 */
#ifndef GANNET_H
#define GANNET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GANNET_API __attribute__((visibility("default")))
#define GANNET_CHECKED __attribute__((warn_unused_result)) GANNET_API
#else
#define GANNET_API
#define GANNET_CHECKED
#endif

/* "0.1.0": the version of the library, which may be later than that of this file. */
GANNET_API const char* gannet_version(void);

/* ---- Results ---------------------------------------------------------------------------------------------------- */

typedef int32_t gannet_code;

enum {
  GANNET_OK = 0,
  GANNET_CANCELLED = 1,
  GANNET_UNKNOWN = 2, /* of a commit: it may have committed. A node died, or the log was not durable in time */
  GANNET_INVALID_ARGUMENT = 3,
  GANNET_DEADLINE_EXCEEDED = 4,
  GANNET_NOT_FOUND = 5,      /* no such row, table or database; a cursor: no further row */
  GANNET_ALREADY_EXISTS = 6, /* the key of an insert; a table of that name */
  GANNET_PERMISSION_DENIED = 7,
  GANNET_RESOURCE_EXHAUSTED = 8, /* memory, disk, transactions at a time, the size of a transaction */
  GANNET_FAILED_PRECONDITION = 9,
  GANNET_ABORTED = 10,      /* met another transaction: run it again */
  GANNET_OUT_OF_RANGE = 11, /* a payload is longer than the memory given, or shorter than what is asked for */
  GANNET_UNIMPLEMENTED = 12,
  GANNET_INTERNAL = 13,
  GANNET_UNAVAILABLE = 14,
  GANNET_DATA_LOSS = 15, /* a file of the directory is missing or damaged */
  /* Functions that are passed to gannet_run may return numbers from here on as their own errors. */
  GANNET_FIRST_OWN_CODE = 1000
};

/* The name of a code: "NOT_FOUND"; "OWN" from GANNET_FIRST_OWN_CODE on; "?" for any other number. */
GANNET_API const char* gannet_code_name(gannet_code code);
/* What went wrong in the last call of this thread that did not return GANNET_OK, and what to do. Valid until the thread
 * calls another function of the library. Never NULL. */
GANNET_API const char* gannet_message(void);

/* ---- Values ----------------------------------------------------------------------------------------------------- */

/* Some bytes. */
typedef struct gannet_bytes {
  const void* data;
  size_t size;
} gannet_bytes;

/* The key of a row: an integer, or bytes, which are compared as unsigned bytes from the first on. Tables have one of
 * both. Made by the functions below; a function that gets a key reads its bytes only until it returns. */
typedef struct gannet_key {
  const void* data; /* NULL: an integer */
  uint64_t number;  /* the integer, or the number of bytes */
} gannet_key;

static inline gannet_key gannet_key_integer(uint64_t integer) {
  gannet_key key;
  key.data = NULL;
  key.number = integer;
  return key;
}
/* Keys of numbers that may be negative, in their order. */
static inline gannet_key gannet_key_signed(int64_t number) {
  return gannet_key_integer((uint64_t)number ^ ((uint64_t)1 << 63));
}
static inline gannet_key gannet_key_bytes(const void* data, size_t size) {
  gannet_key key;
  key.data = data != NULL ? data : "";
  key.number = size;
  return key;
}

/* A byte key of several fields, whose order is that of the fields, first field first. Keys of secondary indexes are
 * tuples, and those of tables may be. Integers have one order, however they were added.
 *
 *   gannet_tuple* place = gannet_tuple_new();
 *   gannet_tuple_add_unsigned(place, warehouse);
 *   gannet_tuple_add_bytes(place, "north", 5);
 *   code = gannet_get(t, districts, gannet_tuple_key(place), &payload);
 *   gannet_tuple_free(place);
 */
typedef struct gannet_tuple gannet_tuple;
/* Without fields. NULL: the process has no memory left. */
GANNET_API gannet_tuple* gannet_tuple_new(void);
GANNET_API void gannet_tuple_free(gannet_tuple* tuple);
/* Forgets its fields. */
GANNET_API void gannet_tuple_clear(gannet_tuple* tuple);
/* Each adds a field at the end. They fail only for want of memory. */
GANNET_API gannet_code gannet_tuple_add_signed(gannet_tuple* tuple, int64_t number);
GANNET_API gannet_code gannet_tuple_add_unsigned(gannet_tuple* tuple, uint64_t number);
GANNET_API gannet_code gannet_tuple_add_double(gannet_tuple* tuple, double number);
GANNET_API gannet_code gannet_tuple_add_bool(gannet_tuple* tuple, int value);
GANNET_API gannet_code gannet_tuple_add_bytes(gannet_tuple* tuple, const void* data, size_t size);
/* The key, valid until the tuple changes or is freed. */
GANNET_API gannet_key gannet_tuple_key(const gannet_tuple* tuple);
/* Each reads the first field of the tuple *rest, and leaves the fields after it in *rest; of no bytes, if there are
 * none. GANNET_INVALID_ARGUMENT: *rest has no field, one of another type, or a number that does not fit; it is then
 * unchanged. gannet_tuple_read_bytes copies the field into `buffer`, which has `capacity` bytes, and its size to *size.
 * GANNET_OUT_OF_RANGE: it is longer; *size then has its size, and *rest and the buffer are unchanged. */
GANNET_CHECKED gannet_code gannet_tuple_read_signed(gannet_key* rest, int64_t* number);
GANNET_CHECKED gannet_code gannet_tuple_read_unsigned(gannet_key* rest, uint64_t* number);
GANNET_CHECKED gannet_code gannet_tuple_read_double(gannet_key* rest, double* number);
GANNET_CHECKED gannet_code gannet_tuple_read_bool(gannet_key* rest, int* value);
GANNET_CHECKED gannet_code gannet_tuple_read_bytes(gannet_key* rest, void* buffer, size_t capacity, size_t* size);

/* The rectangle of a row in a table with a spatial index ("catfish"), which tells equal ones apart by an id.
 * Both ends are included. */
typedef struct gannet_rectangle {
  double min_x;
  double min_y;
  double max_x;
  double max_y;
} gannet_rectangle;

#define GANNET_RECTANGLE_KEY_BYTES 40
/* Writes GANNET_RECTANGLE_KEY_BYTES bytes to `bytes`, of which gannet_key_bytes makes the row's key.
 * GANNET_INVALID_ARGUMENT names a coordinate that is no number or too large, or a minimum above its maximum. */
GANNET_CHECKED gannet_code gannet_encode_rectangle(const gannet_rectangle* rectangle, uint64_t id, void* bytes);
GANNET_CHECKED gannet_code gannet_decode_rectangle(gannet_key key, gannet_rectangle* rectangle, uint64_t* id);

/* ---- Databases -------------------------------------------------------------------------------------------------- */

typedef struct gannet_options gannet_options;
typedef struct gannet_database gannet_database;

enum gannet_durability {
  GANNET_DURABILITY_NONE = 0,  /* only what gannet_close and gannet_checkpoint wrote survives */
  GANNET_DURABILITY_ASYNC = 1, /* a commit returns at once; a crash may lose those of the last milliseconds */
  GANNET_DURABILITY_SYNC = 2   /* a commit returns when it is durable; the default */
};

/* The defaults. Bad values are reported by gannet_open. */
GANNET_API gannet_options* gannet_options_new(void);
GANNET_API void gannet_options_free(gannet_options* options);
/* Not 0: make a database if the directory has none. Default 0: gannet_open then returns GANNET_NOT_FOUND, so that a
 * mistyped directory is not taken for an empty database. */
GANNET_API void gannet_options_set_create_if_missing(gannet_options* options, int create);
GANNET_API void gannet_options_set_durability(gannet_options* options, enum gannet_durability durability);
/* At most this much for indexes and rows; memory is taken as it is needed. Default 8 GiB. */
GANNET_API void gannet_options_set_memory_bytes(gannet_options* options, uint64_t bytes);
/* Longest wait of a write of the log for further commits. Default 300. */
GANNET_API void gannet_options_set_group_commit_microseconds(gannet_options* options, uint64_t microseconds);
/* A commit that is not durable by then returns GANNET_UNKNOWN. Default 10,000. */
GANNET_API void gannet_options_set_durable_within_milliseconds(gannet_options* options, uint64_t milliseconds);
/* Time between checkpoints. Default 0: only by gannet_checkpoint. */
GANNET_API void gannet_options_set_checkpoint_every_milliseconds(gannet_options* options, uint64_t milliseconds);
/* The changes of all large transactions at a time, and so of one. Default 256 MiB. */
GANNET_API void gannet_options_set_largest_transaction_bytes(gannet_options* options, uint64_t bytes);
/* Default 2. */
GANNET_API void gannet_options_set_recovery_threads(gannet_options* options, int threads);
/* Nonzero: of a damaged directory, recover what is left. The result may be inconsistent. on_event gets a warning for
   each part that is left out. Default 0: gannet_open refuses the directory. */
GANNET_API void gannet_options_set_salvage(gannet_options* options, int salvage);
/* Transactions that may be open at a time. Default 64; further ones wait. */
GANNET_API void gannet_options_set_open_transactions(gannet_options* options, int count);
/* Kept in the directory for programs that read it: free text of at most 4096 bytes. */
GANNET_API void gannet_options_set_application(gannet_options* options, const char* text);

enum gannet_event_level {
  GANNET_EVENT_INFO = 0,    /* all is well */
  GANNET_EVENT_WARNING = 1, /* something is lost or was at risk, and the database goes on by itself */
  GANNET_EVENT_ERROR = 2    /* something does not work, and will not until its cause is gone */
};
/* A function of the program, called with rare events: what recovery did and which damage it met, automatic checkpoints,
 * a disk that is full or fails and that works again. `text` is one line, valid until the function returns. The function
 * must return soon, and use no function of this file. Any thread calls it, also several at once, from the beginning of
 * gannet_open until gannet_close returns. */
typedef void (*gannet_event_function)(void* context, enum gannet_event_level level, const char* text);
/* `context` is given to each call. Default NULL for `function`: nobody is told. */
GANNET_API void gannet_options_set_on_event(gannet_options* options, gannet_event_function function, void* context);

/* Opens the database in `directory`, recovers its rows and starts it. NULL for `directory`: a database in memory only.
 * NULL for `options`: the defaults. GANNET_NOT_FOUND: there is none; GANNET_DATA_LOSS: a file is missing or damaged,
 * and nothing was changed; GANNET_FAILED_PRECONDITION: another process has it open. */
GANNET_CHECKED gannet_code gannet_open(const char* directory, const gannet_options* options,
                                       gannet_database** database);
/* Writes what is not durable yet, and closes. The handle and its tables are then invalid, also after an error, which
 * says that not everything that was committed is durable. But GANNET_FAILED_PRECONDITION: a transaction is open, or a
 * thread is in gannet_run or gannet_create_index; nothing was done, and the handle stays valid. */
GANNET_API gannet_code gannet_close(gannet_database* database);
/* Makes all commits durable by a checkpoint, while transactions run. The log before it is not needed any more. */
GANNET_CHECKED gannet_code gannet_checkpoint(gannet_database* database);
/* Copies the database into `directory`, which is new or empty, while transactions run. What was committed before the
 * call is in the copy, which gannet_open opens. After an error there is nothing in it. GANNET_INVALID_ARGUMENT: it is
 * not empty; GANNET_RESOURCE_EXHAUSTED: the disk is full. */
GANNET_CHECKED gannet_code gannet_backup(gannet_database* database, const char* directory);
/* GANNET_OK, or why commits cannot be made durable now. */
GANNET_CHECKED gannet_code gannet_log_health(gannet_database* database);
/* For GANNET_DURABILITY_ASYNC: what was committed before gannet_logged_epoch was called survives a crash as soon as
 * gannet_durable_epoch has reached its result. 0 without a log. */
GANNET_API uint64_t gannet_logged_epoch(gannet_database* database);
GANNET_API uint64_t gannet_durable_epoch(gannet_database* database);
/* The metrics of the database in Prometheus's text format: memory, log, checkpoints, conflicts. For a web server of the
 * program. *text is valid until the thread calls this function again. */
GANNET_CHECKED gannet_code gannet_metrics(gannet_database* database, const char** text);

/* ---- Tables ----------------------------------------------------------------------------------------------------- */

typedef struct gannet_table gannet_table; /* valid as long as its database */
typedef struct gannet_table_options gannet_table_options;

enum gannet_key_kind { GANNET_KEY_INTEGER = 0, GANNET_KEY_BYTES = 1 };

/* What the keys of a table mean. The directory keeps it for messages, and for programs that print rows, such as gannet.
 * Keys are not checked. */
enum gannet_key_form {
  GANNET_KEYS_PLAIN = 0, /* numbers from 0 on, bytes, or rectangles; or the form is not known */
  GANNET_KEYS_TEXT = 1,  /* byte keys that are UTF-8 */
  GANNET_KEYS_TUPLE = 2, /* byte keys of gannet_tuple_key */
  GANNET_KEYS_SIGNED = 3 /* integer keys of gannet_key_signed */
};

/* A table of integer keys with an ordered index, and payloads of any length up to 4,096 bytes. Bad values are reported
 * by gannet_create_table. */
GANNET_API gannet_table_options* gannet_table_options_new(void);
GANNET_API void gannet_table_options_free(gannet_table_options* options);
/* Byte keys have at most `max_bytes` bytes; it is not used for integer keys. */
GANNET_API void gannet_table_options_set_key(gannet_table_options* options, enum gannet_key_kind kind,
                                             size_t max_bytes);
/* Default GANNET_KEYS_PLAIN, which also leaves what the directory has of a table that is there. */
GANNET_API void gannet_table_options_set_key_form(gannet_table_options* options, enum gannet_key_form form);
/* "hash": no order, and fastest for single rows. "xstore": ordered; the default. "blink", "rolex", "dex", "dolphin":
 * ordered, for tables that other machines change. "catfish": rectangles, with keys of GANNET_RECTANGLE_KEY_BYTES bytes. */
GANNET_API void gannet_table_options_set_index(gannet_table_options* options, const char* index);
/* `bytes` of every payload, or, if `variable` is not 0, at most. At most 65,536. */
GANNET_API void gannet_table_options_set_payload(gannet_table_options* options, size_t bytes, int variable);
/* About how many rows there will be: sizes a hash index. Default 1,024. */
GANNET_API void gannet_table_options_set_expected_rows(gannet_table_options* options, uint64_t rows);
/* Kept in the directory with the table: free text of at most 4096 bytes. */
GANNET_API void gannet_table_options_set_application(gannet_table_options* options, const char* text);

/* Makes a table, durably, while transactions run; or returns the one of this name that the directory has, so that a
 * program may call this each time: GANNET_INVALID_ARGUMENT then names an option that differs. NULL for `options`: the
 * defaults. GANNET_ALREADY_EXISTS: this process has created it already. */
GANNET_CHECKED gannet_code gannet_create_table(gannet_database* database, const char* name,
                                               const gannet_table_options* options, gannet_table** table);
/* GANNET_NOT_FOUND: there is none. */
GANNET_CHECKED gannet_code gannet_find_table(gannet_database* database, const char* name, gannet_table** table);
/* GANNET_ABORTED, here and below: another call is widening or arranging the table; call again. */
GANNET_CHECKED gannet_code gannet_rename_table(gannet_database* database, const char* from, const char* to);
/* Removes a table and all its rows, or a secondary index, for good and durably, while transactions run. Waits for the
 * transactions that had begun before, for a limited time: GANNET_DEADLINE_EXCEEDED, and the table stays. Later uses of
 * its handle give GANNET_FAILED_PRECONDITION, and so does this call for a table with secondary indexes: drop these
 * first. GANNET_NOT_FOUND: there is none. */
GANNET_CHECKED gannet_code gannet_drop_table(gannet_database* database, const char* name);
/* Makes the payloads of a table larger, durably: those of a table without `variable` get zeros at their end. Waits like
 * gannet_drop_table; transactions that come meanwhile meet GANNET_ABORTED. */
GANNET_CHECKED gannet_code gannet_widen_table(gannet_database* database, const char* name, size_t payload_bytes);
/* Brings the rows of an ordered table into the order of their keys, in memory: scans of rows that were put in another
 * order are faster afterwards. Waits like gannet_drop_table; transactions that come meanwhile meet GANNET_ABORTED.
 * GANNET_FAILED_PRECONDITION: the table keeps no order. */
GANNET_CHECKED gannet_code gannet_arrange_table(gannet_database* database, const char* name);
/* Number of tables, and the i-th of them, in the order of their creation; NULL if there are not so many. */
GANNET_API size_t gannet_table_count(gannet_database* database);
GANNET_API gannet_table* gannet_table_at(gannet_database* database, size_t i);
GANNET_API const char* gannet_table_name(const gannet_table* table);
GANNET_API enum gannet_key_kind gannet_table_key_kind(const gannet_table* table);
GANNET_API size_t gannet_table_max_key_bytes(const gannet_table* table);
GANNET_API enum gannet_key_form gannet_table_key_form(const gannet_table* table);
/* "hash", "xstore", ... */
GANNET_API const char* gannet_table_index(const gannet_table* table);
GANNET_API int gannet_table_is_ordered(const gannet_table* table);
GANNET_API size_t gannet_table_payload_bytes(const gannet_table* table);
GANNET_API int gannet_table_has_variable_payloads(const gannet_table* table);
GANNET_API const char* gannet_table_application(const gannet_table* table);

/* ---- Secondary indexes ------------------------------------------------------------------------------------------ */

/* Other orders of a table's rows, unique or not, which the library keeps in the transactions that change the rows. The
 * directory has them, so every later program keeps them, too.
 *
 *   gannet_index* by_mail;
 *   gannet_index_options* options = gannet_index_options_new();
 *   gannet_index_options_set_unique(options, 1);
 *   gannet_index_options_add_field(options, GANNET_FIELD_TEXT, offsetof(struct person, mail), sizeof(person.mail));
 *   gannet_code code = gannet_create_index(database, "by_mail", people, options, &by_mail);
 *   gannet_index_options_free(options);
 *
 * A key of an index is a tuple of its fields (gannet_tuple); of an index with one field that is a number which is not
 * negative, also gannet_key_integer. */
typedef struct gannet_index gannet_index; /* valid as long as its database */
typedef struct gannet_index_options gannet_index_options;

enum gannet_field_type {
  GANNET_FIELD_UNSIGNED = 0, /* 1 to 8 bytes, little-endian */
  GANNET_FIELD_SIGNED = 1,   /* the same with a sign */
  GANNET_FIELD_FLOATING = 2, /* 4 or 8 bytes */
  GANNET_FIELD_TEXT = 3,     /* up to the first zero byte, or the end of the field */
  GANNET_FIELD_BYTES = 4     /* all bytes */
};

/* Not unique, without fields. */
GANNET_API gannet_index_options* gannet_index_options_new(void);
GANNET_API void gannet_index_options_free(gannet_index_options* options);
/* Not 0: two rows cannot have the same key in the index. A commit that would give it to a second row returns
 * GANNET_ALREADY_EXISTS. */
GANNET_API void gannet_index_options_set_unique(gannet_index_options* options, int unique);
/* Adds a field after those before it: some bytes of the payload, or of the row's key. `bytes` 0, with
 * GANNET_FIELD_TEXT and GANNET_FIELD_BYTES: up to the end. Of an integer key it is the number: offset 0, 8 bytes;
 * GANNET_FIELD_SIGNED: that of gannet_key_signed. Rows that end before the field are not in the index. */
GANNET_API void gannet_index_options_add_field(gannet_index_options* options, enum gannet_field_type type,
                                               size_t offset, size_t bytes);
GANNET_API void gannet_index_options_add_key_field(gannet_index_options* options, enum gannet_field_type type,
                                                   size_t offset, size_t bytes);
/* gannet_create_index waits for the transactions that were open when it began, at most as long. Default 30,000. */
GANNET_API void gannet_index_options_set_wait_milliseconds(gannet_index_options* options, uint64_t milliseconds);

/* Makes an index of the rows that there are, durably, while transactions run; or returns the one of this name that the
 * directory has. GANNET_INVALID_ARGUMENT names the option that is wrong, or differs. GANNET_ALREADY_EXISTS: this
 * process has created it already; or two rows have one key of a unique index: it names both. GANNET_DEADLINE_EXCEEDED:
 * a transaction stayed open. After an error there is no index that can be read; call it again to build it. */
GANNET_CHECKED gannet_code gannet_create_index(gannet_database* database, const char* name, const gannet_table* table,
                                               const gannet_index_options* options, gannet_index** index);
/* GANNET_NOT_FOUND: there is none. gannet_drop_table drops an index, too. */
GANNET_CHECKED gannet_code gannet_find_index(gannet_database* database, const char* name, gannet_index** index);
GANNET_API const char* gannet_index_name(const gannet_index* index);
/* The table whose rows it has. */
GANNET_API const gannet_table* gannet_index_table(const gannet_index* index);
GANNET_API int gannet_index_is_unique(const gannet_index* index);

/* ---- Transactions ----------------------------------------------------------------------------------------------- */

typedef struct gannet_transaction gannet_transaction;

/* The body of a transaction: GANNET_OK commits; any other number rolls back. It may run several times, so it has no
 * effects outside of the database, and begins by forgetting what it gathered before. It returns what a function of the
 * library returned, or an own error from GANNET_FIRST_OWN_CODE on. */
typedef gannet_code (*gannet_body)(gannet_transaction* transaction, void* context);

/* Runs `body` until it commits. GANNET_OK: it has committed, and is durable. GANNET_UNKNOWN: it may have committed.
 * Any other result: it was rolled back. A body's own error is returned as it is, and what the body read then was
 * current. A body that returns another number than these, or GANNET_UNKNOWN by itself, is rolled back, and the result
 * is GANNET_INVALID_ARGUMENT. Exceptions must not leave a body. */
GANNET_CHECKED gannet_code gannet_run(gannet_database* database, gannet_body body, void* context);

/* Begins a transaction that the program ends itself, by gannet_transaction_free. Prefer gannet_run:
 *
 *   gannet_transaction* t;
 *   gannet_code code = gannet_begin(database, &t);
 *   if (code == GANNET_OK) {
 *     do {
 *       code = transfer(t);
 *       if (code == GANNET_OK) code = gannet_commit(t);
 *     } while (gannet_try_again(t, code));
 *     gannet_transaction_free(t);
 *   }
 *
 * While it is open, no memory that others free is used again: it should end soon. */
GANNET_CHECKED gannet_code gannet_begin(gannet_database* database, gannet_transaction** transaction);
/* GANNET_OK: it has committed, and is durable. GANNET_UNKNOWN: it may have committed. Any other result: nothing was
 * changed. What the transaction read may be relied on only after GANNET_OK or GANNET_ALREADY_EXISTS. Its operations
 * then return GANNET_FAILED_PRECONDITION until gannet_rollback or gannet_try_again begins it again.
 *
 * Not in a body of gannet_run, which ends its transaction: gannet_commit and gannet_rollback then return
 * GANNET_FAILED_PRECONDITION, as do all further operations and gannet_run, and nothing is committed. */
GANNET_CHECKED gannet_code gannet_commit(gannet_transaction* transaction);
/* GANNET_OK if everything read so far is still current. */
GANNET_CHECKED gannet_code gannet_validate(gannet_transaction* transaction);
/* Drops the changes and forgets the reads: the transaction is as if it had just begun, also after gannet_commit. */
GANNET_CHECKED gannet_code gannet_rollback(gannet_transaction* transaction);
/* If `code` is GANNET_ABORTED: waits for a short random time, begins the transaction again, and returns 1. A
 * transaction that loses for too long then goes first. Otherwise returns 0, does nothing, and leaves gannet_message as
 * it is. */
GANNET_API int gannet_try_again(gannet_transaction* transaction, gannet_code code);
/* Rolls back what is not committed. */
GANNET_API void gannet_transaction_free(gannet_transaction* transaction);

/* The operations. They see the transaction's own changes, which are buffered until it commits. The table is one of the
 * transaction's database, which is not checked.
 *
 * After GANNET_NOT_FOUND, GANNET_ALREADY_EXISTS, GANNET_OUT_OF_RANGE, GANNET_INVALID_ARGUMENT and
 * GANNET_FAILED_PRECONDITION, and GANNET_RESOURCE_EXHAUSTED of a change, the transaction may continue. After any other
 * error it has failed: every further operation returns the same. */

/* The payload, which is valid until the transaction ends. */
GANNET_CHECKED gannet_code gannet_get(gannet_transaction* transaction, const gannet_table* table, gannet_key key,
                                      gannet_bytes* payload);
/* Copies the payload into `buffer`, which has `capacity` bytes, and its size to *size. GANNET_OUT_OF_RANGE: it is
 * longer; *size then has its size, and the buffer is unchanged. */
GANNET_CHECKED gannet_code gannet_get_copy(gannet_transaction* transaction, const gannet_table* table, gannet_key key,
                                           void* buffer, size_t capacity, size_t* size);
GANNET_CHECKED gannet_code gannet_exists(gannet_transaction* transaction, const gannet_table* table, gannet_key key,
                                         int* exists);
/* If the key exists, this or the commit returns GANNET_ALREADY_EXISTS. */
GANNET_CHECKED gannet_code gannet_insert(gannet_transaction* transaction, const gannet_table* table, gannet_key key,
                                         const void* payload, size_t size);
/* Replaces the whole payload. GANNET_NOT_FOUND. */
GANNET_CHECKED gannet_code gannet_update(gannet_transaction* transaction, const gannet_table* table, gannet_key key,
                                         const void* payload, size_t size);
/* Inserts the row, or replaces its whole payload. */
GANNET_CHECKED gannet_code gannet_upsert(gannet_transaction* transaction, const gannet_table* table, gannet_key key,
                                         const void* payload, size_t size);
/* Replaces the whole payload if it is `expected`; *updated says whether it was. GANNET_NOT_FOUND. */
GANNET_CHECKED gannet_code gannet_update_if(gannet_transaction* transaction, const gannet_table* table, gannet_key key,
                                            gannet_bytes expected, gannet_bytes payload, int* updated);
/* GANNET_NOT_FOUND: there was no such row. */
GANNET_CHECKED gannet_code gannet_remove(gannet_transaction* transaction, const gannet_table* table, gannet_key key);
/* Adds to the little-endian number of 8 bytes at `offset` of the payload, and writes the sum to *sum, which may be
 * NULL. GANNET_NOT_FOUND; GANNET_OUT_OF_RANGE: the payload ends before, or the sum does not fit. */
GANNET_CHECKED gannet_code gannet_add(gannet_transaction* transaction, const gannet_table* table, gannet_key key,
                                      size_t offset, int64_t delta, int64_t* sum);

/* The row with this key of a unique index: its own key, and its payload, both valid until the transaction ends. Either
 * may be NULL. GANNET_NOT_FOUND. GANNET_FAILED_PRECONDITION: the index is not unique, or is still being built.
 * GANNET_ALREADY_EXISTS: the transaction has given one key of a unique index to two rows. */
GANNET_CHECKED gannet_code gannet_get_by(gannet_transaction* transaction, const gannet_index* index, gannet_key key,
                                         gannet_key* row, gannet_bytes* payload);

/* ---- Cursors ---------------------------------------------------------------------------------------------------- */

/* Goes through the rows of a table with an ordered index, in the order of their keys, in both directions:
 *
 *   gannet_cursor* rows;
 *   gannet_code code = gannet_cursor_open(t, cities, GANNET_CURSOR_READ, &rows);
 *   if (code != GANNET_OK) return code;
 *   code = gannet_cursor_set_prefix(rows, "S", 1);
 *   if (code == GANNET_OK) code = gannet_cursor_first(rows);
 *   for (; code == GANNET_OK; code = gannet_cursor_next(rows)) print(gannet_cursor_key(rows));
 *   gannet_cursor_close(rows);
 *   return code == GANNET_NOT_FOUND ? GANNET_OK : code;
 *
 * A cursor takes constant memory; the transaction remembers 16 bytes for each row that it read. Changes that the
 * transaction makes meanwhile are seen by the next move. A transaction begun again needs new cursors. */
typedef struct gannet_cursor gannet_cursor;

enum gannet_cursor_mode {
  GANNET_CURSOR_READ = 0,
  GANNET_CURSOR_KEYS = 1,  /* payloads are not read, and are empty */
  GANNET_CURSOR_UPDATE = 2 /* gannet_cursor_update and gannet_cursor_remove may be used */
};

/* GANNET_FAILED_PRECONDITION: the table's index is not ordered. */
GANNET_CHECKED gannet_code gannet_cursor_open(gannet_transaction* transaction, const gannet_table* table,
                                              enum gannet_cursor_mode mode, gannet_cursor** cursor);
/* The same through the rows of an index's table, in the order of the index: ends of the range, keys to seek and
 * prefixes are keys of the index, or tuples of its first fields, which stand for all keys that begin so.
 * gannet_cursor_key is the row's own key. Rows with equal keys in the index are in the order of their own. Errors of
 * the moves are also those of gannet_get_by. */
GANNET_CHECKED gannet_code gannet_index_cursor_open(gannet_transaction* transaction, const gannet_index* index,
                                                    enum gannet_cursor_mode mode, gannet_cursor** cursor);
/* Closed before its transaction ends. */
GANNET_API void gannet_cursor_close(gannet_cursor* cursor);

/* The range that the cursor stays in: all rows, unless one of these is called before the first move. An end that is
 * NULL is open; *_included says whether the key itself belongs to the range. */
GANNET_CHECKED gannet_code gannet_cursor_set_range(gannet_cursor* cursor, const gannet_key* from, int from_included,
                                                   const gannet_key* to, int to_included);
/* The byte keys that begin so. */
GANNET_CHECKED gannet_code gannet_cursor_set_prefix(gannet_cursor* cursor, const void* data, size_t size);

/* The moves. GANNET_OK: the cursor is at a row. GANNET_NOT_FOUND: there is no such row. */
GANNET_CHECKED gannet_code gannet_cursor_first(gannet_cursor* cursor);
GANNET_CHECKED gannet_code gannet_cursor_last(gannet_cursor* cursor);
GANNET_CHECKED gannet_code gannet_cursor_next(gannet_cursor* cursor);
GANNET_CHECKED gannet_code gannet_cursor_previous(gannet_cursor* cursor);
/* To the first row whose key is not smaller, or to the last one whose key is not greater. */
GANNET_CHECKED gannet_code gannet_cursor_seek_forward(gannet_cursor* cursor, gannet_key key);
GANNET_CHECKED gannet_code gannet_cursor_seek_backward(gannet_cursor* cursor, gannet_key key);

/* The row that the cursor is at: valid until it moves or is closed. At no row: the integer 0, and no bytes. */
GANNET_API gannet_key gannet_cursor_key(const gannet_cursor* cursor);
GANNET_API gannet_bytes gannet_cursor_payload(const gannet_cursor* cursor);
/* Its key in the index, a tuple. GANNET_FAILED_PRECONDITION: the cursor is at no row, or not one of an index. */
GANNET_CHECKED gannet_code gannet_cursor_index_key(gannet_cursor* cursor, gannet_key* key);
/* Changes of that row, with GANNET_CURSOR_UPDATE. The cursor stays, and its payload as it was read. */
GANNET_CHECKED gannet_code gannet_cursor_update(gannet_cursor* cursor, const void* payload, size_t size);
GANNET_CHECKED gannet_code gannet_cursor_remove(gannet_cursor* cursor);

/* Cursors over the rows of a table with a spatial index: those whose rectangles meet `window`, in the order of their
 * keys, or the `count` rows that are nearest to a point, the nearest first. All are read at once. Such a cursor only
 * moves by gannet_cursor_first, last, next and previous. */
GANNET_CHECKED gannet_code gannet_search_open(gannet_transaction* transaction, const gannet_table* table,
                                              const gannet_rectangle* window, enum gannet_cursor_mode mode,
                                              gannet_cursor** cursor);
GANNET_CHECKED gannet_code gannet_nearest_open(gannet_transaction* transaction, const gannet_table* table, double x,
                                               double y, size_t count, enum gannet_cursor_mode mode,
                                               gannet_cursor** cursor);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* GANNET_H */
