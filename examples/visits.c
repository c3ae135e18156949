/* Counts the visits of names in a directory, over all its runs, and prints all counts in the order of the names:
 *
 *   visits /tmp/visits anna ben anna    # anna 2, ben 1
 *   visits /tmp/visits ben              # anna 2, ben 2
 *
 * usage: visits DIRECTORY NAME...
 *   cc visits.c $(pkg-config --cflags --libs libgannet)
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gannet.h"

struct visit {
  const gannet_table* counts;
  const char* name;
};

static gannet_code count_visit(gannet_transaction* t, void* context) {
  const struct visit* const visit = context;
  const gannet_key key = gannet_key_bytes(visit->name, strlen(visit->name));
  const int64_t one = 1;
  const gannet_code code = gannet_add(t, visit->counts, key, 0, 1, NULL);
  return code == GANNET_NOT_FOUND ? gannet_upsert(t, visit->counts, key, &one, sizeof one) : code;
}

static gannet_code print_counts(gannet_transaction* t, const gannet_table* counts) {
  gannet_cursor* rows = NULL;
  gannet_code code = gannet_cursor_open(t, counts, GANNET_CURSOR_READ, &rows);
  if (code != GANNET_OK) return code;
  for (code = gannet_cursor_first(rows); code == GANNET_OK; code = gannet_cursor_next(rows)) {
    const gannet_key key = gannet_cursor_key(rows);
    int64_t count = 0;
    memcpy(&count, gannet_cursor_payload(rows).data, sizeof count);
    printf("%.*s %" PRId64 "\n", (int)key.number, (const char*)key.data, count);
  }
  gannet_cursor_close(rows);
  return code == GANNET_NOT_FOUND ? GANNET_OK : code; /* there is no further row */
}

/* Makes the table, or finds it in the directory. */
static gannet_code open_counts(gannet_database* database, gannet_table** counts) {
  gannet_table_options* const options = gannet_table_options_new();
  gannet_table_options_set_key(options, GANNET_KEY_BYTES, 64);
  gannet_table_options_set_payload(options, sizeof(int64_t), 0);
  const gannet_code code = gannet_create_table(database, "visits", options, counts);
  gannet_table_options_free(options);
  return code;
}

static gannet_code run(gannet_database* database, int names, char** name) {
  gannet_table* counts = NULL;
  gannet_transaction* t = NULL;
  gannet_code code = open_counts(database, &counts);
  for (int i = 0; i < names && code == GANNET_OK; ++i) {
    struct visit visit = {counts, name[i]};
    code = gannet_run(database, count_visit, &visit);
  }
  if (code != GANNET_OK) return code;
  /* A body of gannet_run may run several times. What prints is a transaction of its own, which nothing disturbs here.
   */
  code = gannet_begin(database, &t);
  if (code != GANNET_OK) return code;
  code = print_counts(t, counts);
  if (code == GANNET_OK) code = gannet_commit(t);
  gannet_transaction_free(t);
  return code;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: visits DIRECTORY NAME...\n");
    return 2;
  }
  gannet_options* const options = gannet_options_new();
  gannet_database* database = NULL;
  gannet_options_set_create_if_missing(options, 1);
  gannet_code code = gannet_open(argv[1], options, &database);
  gannet_options_free(options);
  if (code == GANNET_OK) code = run(database, argc - 2, argv + 2);
  if (code != GANNET_OK) fprintf(stderr, "%s: %s\n", gannet_code_name(code), gannet_message());
  if (database != NULL && gannet_close(database) != GANNET_OK) {
    fprintf(stderr, "%s\n", gannet_message());
    return 1;
  }
  return code == GANNET_OK ? 0 : 1;
}
