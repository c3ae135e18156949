/* durable.pml: from a commit to its acknowledgement (log_shared.h, thread_signal.h, blocked_threads.h of log/commit), as
 * a model for SPIN 6.5: a thread that is blocked until its commit is durable waits for the log thread only.
 *
 * What is modelled. Workers commit: they enter their slot, append in the current epoch, leave, wake the log thread if
 * they were the first of the epoch, and block. The log thread closes epochs (raise, drain, collect, write, publish) and
 * sleeps. It wants to be woken by 1 or more blocked threads, as group_pace.h says: any number here. Both sides sleep on a
 * futex: the kernel compares the word and puts the thread to sleep in one step. One step of a process is one access of
 * shared memory. A worker may lose its core for ever between any two steps outside of its slot. (In its slot it keeps its
 * epoch open: no other thread can be acknowledged without it.)
 *
 * A timer of the log thread ends a sleep only while fewer threads are blocked than it waits for, or if one of them may
 * have lost its core before it could wake the log thread. So a lost wake-up ends the run, and no timer hides it. The
 * sleep of a log thread that has nothing to do has no timer.
 *
 * Properties, all of them assertions:
 *  D1  When nothing can happen any more, each worker that has not lost its core has been acknowledged.
 *  D2  Nothing is appended in an epoch that was collected.
 *  D3  An acknowledged commit is in a batch that was written.
 *
 * Run: docs/models/README.md. Its size: WORKERS, COMMITS (of each), STOPS (workers that lose their core).
 * Deliberate mistakes (each must fail):
 *   LOOK_FIRST         the log thread looks for work before it says that it sleeps
 *   WAKER_SAYS_AWAKE   a waker says that the log thread is awake before it has called the kernel
 *   FIRST_WAKES        a blocked thread relies on the one that made the epoch dirty
 *   COUNT_LATE         a thread looks at the number of blocked threads before it is one of them
 *   FLUSH_AT_LATE      the log thread says at which number it wants to be woken after it has looked at the number
 *   SLEEPERS_FIRST     the log thread looks for sleepers before it publishes the epoch
 *   SEEN_LATE          a worker reads the futex's word after it has looked at the durable epoch
 *   DRAIN_FIRST        the log thread looks at the slots before it raises the epoch
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef COMMITS
#define COMMITS 1
#endif
#ifndef STOPS
#define STOPS 1
#endif

#define EPOCHS (WORKERS * COMMITS + 2)
#define NONE 255

/* ThreadSignal */
#define AWAKE 0
#define UNTIL_DIRTY 1
#define UNTIL_BLOCKED 2
#define WOKEN 3
byte state = AWAKE;
bool log_sleeps;        /* in the kernel */

byte current = 1;
byte last_dirty;
byte slot[WORKERS];     /* 0: idle */
byte numbers[EPOCHS];   /* of blocked threads; those of collected epochs do not count */
byte numbers_sum;       /* of all of them */
byte flush_at = 1;
byte collected;
byte written;
byte durable;
byte durable_changes;
byte durable_sleepers;
bool sleeps[WORKERS];   /* in the kernel */

byte stops = STOPS;
byte over;              /* workers that are done, or have lost their core */

/* Number of blocked threads, into `to`. */
#define COUNT(to) to = numbers_sum
#define ADD d_step { numbers[mine]++; numbers_sum++ }

#define MAY_STOP if :: true -> skip :: atomic { stops > 0 -> stops-- }; goto done fi

/* WakeFrom(deepest), by a worker */
#ifdef WAKER_SAYS_AWAKE
#define WAKE(deepest) \
  if \
  :: state != AWAKE && state <= deepest -> state = AWAKE; MAY_STOP; log_sleeps = false \
  :: else -> skip \
  fi
#else
#define WAKE(deepest) \
  seen = state; \
  do \
  :: seen != AWAKE && seen <= deepest -> \
       atomic { if :: state == seen -> state = WOKEN; seen = WOKEN :: else -> seen = state fi } \
  :: else -> break \
  od; \
  if :: seen == WOKEN -> seen = 0; MAY_STOP; log_sleeps = false :: else -> seen = 0 fi
#endif

proctype Worker(byte id)
{
  byte commits = COMMITS;
  byte mine;
  byte seen;
  byte number;
  bool first;
  do
  :: commits == 0 -> break
  :: else ->
       commits--;
       /* Enter */
       mine = current;
       do
       :: slot[id] = mine;
          if :: current == mine -> break :: else -> mine = current fi
       od;
       /* Append */
       assert(mine > collected);                      /* D2 */
       first = false;
       if
       :: last_dirty < mine -> atomic { if :: last_dirty < mine -> last_dirty = mine; first = true :: else -> skip fi }
       :: else -> skip
       fi;
       /* Leave */
       slot[id] = 0;
       MAY_STOP;
       if :: first -> first = false; WAKE(UNTIL_DIRTY) :: else -> skip fi;
#ifndef FIRST_WAKES
       /* NoteBlocked */
       if
       :: mine > collected ->
#ifdef COUNT_LATE
            COUNT(number);
            number++;
            ADD;
#else
            ADD;
            COUNT(number);
#endif
            if :: number >= flush_at -> number = 0; MAY_STOP; WAKE(UNTIL_BLOCKED) :: else -> number = 0 fi
       :: else -> skip
       fi;
#endif
       /* SleepUntilDurable */
       do
       :: durable >= mine -> break
       :: else ->
#ifdef SEEN_LATE
            if :: durable >= mine -> break :: else -> skip fi;
            seen = durable_changes;
#else
            seen = durable_changes;
            if :: durable >= mine -> break :: else -> skip fi;
#endif
            durable_sleepers++;
            atomic { if :: durable_changes == seen -> sleeps[id] = true :: else -> skip fi; seen = 0 };
            !sleeps[id];
            durable_sleepers--
       od;
       assert(written >= mine)                        /* D3 */
  od;
done:
  over++
}

/* Looks whether the log thread must not sleep until `at` threads are blocked. The last look counts. */
#define LOOK(at) dirty = last_dirty; atomic { COUNT(number); busy = (dirty > written && number >= at); number = 0; dirty = 0 }

/* The timer may end a sleep. */
#define TIMER(at) (last_dirty <= written || numbers_sum < at || stops < STOPS)

/* SleepUntilBlocked(at) */
#define SLEEP_UNTIL_BLOCKED(at) \
  SET_FLUSH_AT(at); \
  FIRST_LOOK(at); \
  state = UNTIL_BLOCKED; \
  SECOND_LOOK(at); \
  SET_FLUSH_AT_LATE(at); \
  if \
  :: busy -> skip \
  :: else -> atomic { if :: state == UNTIL_BLOCKED -> log_sleeps = true :: else -> skip fi } \
  fi; \
  if \
  :: !log_sleeps -> skip \
  :: atomic { TIMER(at) -> log_sleeps = false } \
  fi; \
  state = AWAKE; \
  LOOK(at)

#ifdef FLUSH_AT_LATE
#define SET_FLUSH_AT(at) skip
#define SET_FLUSH_AT_LATE(at) flush_at = at
#else
#define SET_FLUSH_AT(at) flush_at = at
#define SET_FLUSH_AT_LATE(at) skip
#endif
#ifdef LOOK_FIRST
#define FIRST_LOOK(at) LOOK(at)
#define SECOND_LOOK(at) skip
#else
#define FIRST_LOOK(at) skip
#define SECOND_LOOK(at) LOOK(at)
#endif

active proctype Log()
{
  byte wanted;
  byte oldest;
  byte number;
  byte each;
  byte dirty;
  byte at;
  bool busy;
  bool any;
round:
  wanted = last_dirty;
#ifndef DRAIN_FIRST
  if :: current <= wanted -> current = wanted + 1 :: else -> skip fi;
#endif
  /* OldestSlot */
  oldest = current;
  each = 0;
  do
  :: each < WORKERS ->
       if :: slot[each] != 0 && slot[each] < oldest -> oldest = slot[each] :: else -> skip fi;
       each++
  :: else -> break
  od;
  each = 0;
#ifdef DRAIN_FIRST
  if :: current <= wanted -> if :: oldest == current -> oldest++ :: else -> skip fi; current = wanted + 1 :: else -> skip fi;
#endif
  if
  :: oldest - 1 > written && last_dirty > written ->
       /* Collect */
       collected = oldest - 1;
       d_step { each = 0; do :: each <= collected -> numbers_sum = numbers_sum - numbers[each]; numbers[each] = 0; each++ :: else -> break od; each = 0 }
       written = oldest - 1;
       /* PublishDurable */
#ifdef SLEEPERS_FIRST
       any = durable_sleepers != 0;
       durable = written;
       durable_changes++;
#else
       durable = written;
       durable_changes++;
       any = durable_sleepers != 0;
#endif
       if
       :: any -> d_step { each = 0; do :: each < WORKERS -> sleeps[each] = false; each++ :: else -> break od; each = 0 }
       :: else -> skip
       fi
  :: else -> skip
  fi;
  oldest = 0;
  any = false;
  if :: written < wanted -> goto round :: else -> wanted = 0 fi;  /* a slot keeps it open: the thread looks again soon */

  /* SleepUntilNextRound */
  at = 1;
  if :: true -> skip :: at = WORKERS fi;
  SLEEP_UNTIL_BLOCKED(at);
  if :: busy -> busy = false; goto round :: else -> skip fi;
  SLEEP_UNTIL_BLOCKED(1);
  if :: busy -> busy = false; goto round :: else -> skip fi;
#ifdef LOOK_FIRST
  dirty = last_dirty;
#endif
  state = UNTIL_DIRTY;
#ifndef LOOK_FIRST
  dirty = last_dirty;
#endif
  if
  :: dirty > written -> dirty = 0
  :: else -> atomic { dirty = 0; if :: state == UNTIL_DIRTY -> log_sleeps = true :: else -> skip fi }
  fi;
end_idle:
  !log_sleeps;
  state = AWAKE;
  goto round
}

init
{
  byte id = 0;
  atomic { do :: id < WORKERS -> run Worker(id); id++ :: else -> break od }
  timeout -> assert(over == WORKERS)                  /* D1 */
}
