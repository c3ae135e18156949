/* dolphin_lock.pml: the leaf of Dolphin (index/dolphin/leaf.h), as a model for SPIN 6.5: the ternary lock (IDU shared, SMO exclusive), the
 * changes of a leaf under it, readers, deaths, the owner's repair, reuse of a block. Behind it: the lock of the first draft
 * (DRAFT), and inserts of two transactions at two owners (SKEW).
 *
 * What is modelled. Two blocks of one owner; block 0 is the leaf of the keys 1 to 3, block 1 is free, or its right sibling. A block
 * has a lock line (state word, holders word), a head line (number, fences, right link) and two slots. A slot has a key word and
 * a target word, each in a line of its own with a number. One step of a process is one verb on one word, or the access to one
 * line. Words of a line change alone (fabric.h, 1); whole lines are written under the SMO lock only, and are never seen mixed
 * (fabric.h, 2). The verbs of a client take effect in the order posted (fabric.h, 3). What one READ brings is seen in any order.
 * A client is a node. It may die between any two of its steps, and takes no step after that (fabric.h, 5).
 *
 * Clients. IDU: insert (claim by CAS, target, key), two inserts of one stay, blind update, remove. SMO: insert, split, absorb, tidy.
 * Each begins at any block, because a cached address may be stale. Those that wait for the lock's end give up instead; a holder of the SMO lock waits
 * until the leaf is drained, so a bit that stays would end in an invalid end state. The owner repairs after a death and sweeps.
 * Reader: (1) one READ, and the value or absence of a key; (2) an FAA of 0 on the state word, the READ, and later the validation;
 * (3) the owner's CPU, which takes locked leaves, too (OWNER_READS).
 *
 * Ghosts. `val`: the value of each key, changed in the step that publishes, updates or removes it. `told`: the word has changed
 * since the key was published. `inside`: who is alone in a leaf. `hist`: the values of the reader's key since its READ began.
 *
 * Properties, all assertions, and that no process stays blocked:
 *  P1  A reader returns a value, or an absence, that the key had at some moment of its READ.
 *  P2  A key that the answer lacks, while the word is the same at the validation, is absent, or its inserter has not changed the word
 *      yet, and so validates later.
 *  P3  Nobody writes in IDU mode while a holder of the SMO lock is alone, and the reverse. A bit is added where it was clear, and
 *      taken away where it was set. The state word does not change under a holder that is alone.
 *  P4  In the end: no lock, no bit, no claim; the chain has every key once, with its value (no lost update); all lines have the
 *      number of the leaf; each other block is dead and free.
 *  P5  A line gets greater numbers only. A key is published while it is absent only.
 *
 * Run:  spin -a SWITCHES dolphin_lock.pml && gcc -O2 -w -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM=5500 -o pan pan.c &&
 *       ./pan -m400000 -n -w24                      (tests/models/check.sh does this for the cases in dolphin_lock.cases)
 * Size: OPS1 OPS2 OPS3 (operations of each client; 1 1 0), DEATHS (1); SET1 SET2 SET3: which operations, bits: 1 insert, 2 update,
 * 4 remove, 8 insert under the SMO lock, 16 split, 32 absorb, 64 tidy (127); 128 two inserts of one stay. CLIENT_READ_LINES: clients,
 * too, see the lines of a READ one by one. FAILS: a posting of each client may fail, after any part of it has taken effect, and is repeated. START_EMPTY, START_FULL, START_SPLIT: the leaf at the beginning. NO_READER, NO_R1, NO_R2, OWNER_READS; RB, RK: the
 * reader's block and key. GIVE_UP: holders may give the lock back before the leaf is drained. ONE_WORD: inserts of one word (byte
 * keys): CAS, raise and leave in one posting.
 *
 * Found while the protocol was made (the mends are rules now):
 *  1  REPAIR_BUMPS: the repair raised the state word before it cleared the dead one's bit. The bit can be that of a client that only
 *     looked in: a live holder of the SMO lock was alone, and its word changed.
 *  2  SWEEP_LOOKS_AGAIN: the sweep asked the chain after the repair. A live client had begun to absorb the block meanwhile.
 *  3  A new leaf whose free slots have old targets: a later claim shows them.
 *  4  KEEP_LINES: an SMO wrote only lines that change. A client that entered during it saw a head of the new state and a line of
 *     the old one, took a slot behind a removed one, and a key was there twice.
 *  5  LINKED_FIRST: the repair opened the left leaf before the absorbed right one was dead.
 *  6  A witness in one READ (STATE_IN_READ): a line may be older than the state word.
 *  7  REPEAT_WORDS: an insert whose posting has failed repeated its words. They had taken effect, and another client had removed the
 *     key, or updated it, since. Now it repeats them only while the slot has its claim.
 *  8  LIVE_FIRST: a split opened the right leaf before it released the left one. If that posting has to be repeated in between, it
 *     overwrites what others have changed in the right leaf. Now the left one is released first.
 *
 * Complete, without an error (SWITCHES: states stored):
 *   NO_READER, also with START_FULL, START_SPLIT, START_EMPTY: 1.5 to 1.8 M each; with CLIENT_READ_LINES 5.5 to 8.9 M each
 *   NO_READER FAILS, also with START_SPLIT: 3.5 M each
 *   NO_READER DEATHS=2: START_SPLIT 3.6 M, START_FULL 2.9 M.   NO_READER GIVE_UP START_SPLIT: 1.9 M
 *   NO_READER ONE_WORD START_EMPTY: SET1=5 SET2=125 0.5 M; SET1=5 SET2=5 OPS2=2 0.7 M
 *   NO_READER OPS1=2: SET1=112 SET2=127 START_SPLIT 3.9 M; SET1=7 SET2=127 4.4 M; OPS2=2 SET1=7 SET2=7 5.2 M;
 *     OPS2=2 SET1=112 SET2=7 START_SPLIT 16.2 M
 *   NO_READER OPS3=1: SET1=7 SET2=7 SET3=112 65.5 M; SET1=7 SET2=112 SET3=112 START_SPLIT 45.2 M; START_SPLIT SET1=32 SET2=16 SET3=7
 *     2.4 M, with DEATHS=2 8.0 M, with CLIENT_READ_LINES 15.9 M (reuse of the block)
 *   P1, NO_R2: SET1=7 SET2=7 RB=0 RK=1 66.1 M, RK=2 60.3 M. Each of SET1 = 1, 2, 4 with START_SPLIT SET2=32, START_FULL SET2=16 (RB=0, 1; RK=3),
 *     SET2=64 (RB=0 RK=1), SET2=8 (RB=0 RK=2): 8 to 109 M each. START_SPLIT SET1=32 SET2=16 RK=3: RB=0 44.8 M, RB=1 7.6 M
 *   P2, NO_R1: SET1=7 SET2=7 RB=0 12.0 M; SET1=7 SET2=120 START_SPLIT RB=0 34.7 M, RB=1 24.4 M, START_FULL RB=0 46.8 M, RB=1 44.8 M;
 *     SET1=120 SET2=120 START_SPLIT RB=0 49.0 M, RB=1 36.3 M
 *   OWNER_READS NO_R1 NO_R2: SET1=7 SET2=7 RB=0 RK=2 6.7 M; SET1=7 SET2=32 START_SPLIT RB=1 RK=3 4.2 M; SET1=7 SET2=120 START_SPLIT RB=0 RK=3 22.8 M;
 *     SET1=7 SET2=16 START_FULL RB=1 RK=3 40.7 M; SET1=120 SET2=120 START_SPLIT RB=1 RK=3 23.5 M
 * The largest takes 4.8 GB and three minutes; all 56 together are 1.6 billion states.
 * Two inserts of one stay, and another client, START_EMPTY SET1=128:
 *   NO_READER: SET2=255 1.8 M, with FAILS 5.4 M; SET2=133 DEATHS=2 1.8 M; SET2=5 OPS2=2 1.6 M; SET2=1 OPS3=1 SET3=4 17.3 M
 *   P1, NO_R2: SET2=4 RB=0 RK=1 DEATHS=0 4.1 M.   P2, NO_R1: SET2=5 RB=0 31.3 M
 * Not complete: NO_R2 SET1=7 SET2=120 START_SPLIT RB=0 RK=3 in one run (127 M states in 5.5 GB, no error); the runs of P1 are its parts.
 *
 * Must fail, each alone and with the switches named (states until found):
 *   LOOK_FIRST           the leaf is looked at before the bit is set: no name before the lock (NO_READER: 3,000)
 *   ONE_NODE             two threads of one node are inside (NO_READER DEATHS=0: 41)
 *   LEAVE_EARLY          the bit goes before the key is published: wrong order of decrement (NO_READER: 2,000; DEATHS=0: 6,000)
 *   NO_DRAIN, NO_DRAIN_RIGHT   an SMO does not wait for IDU (NO_READER, the second with START_SPLIT: 129,000; 504,000)
 *   NO_BUMP, BUMP_EARLY  an insert does not change the state word, or does so first (NO_R1 DEATHS=0: 3,200; 10,000)
 *   NO_CLAIM             the CAS of the key word publishes it, before its value (NO_R2 DEATHS=0: 115,000)
 *   ANY_SLOT             an insert takes any free slot (NO_READER START_EMPTY: 6,700). The first of two of one stay takes any, and
 *                        the second the other one (with SET1=128 SET2=1: 12,000)
 *   NOT_VOID             the second insert of a stay is made although the first one has met its key (NO_READER START_EMPTY SET1=128 SET2=1:
 *                        50,000)
 *   REUSE_GONE           an insert takes a removed slot (NO_READER OPS2=2 SET1=1 SET2=5: 337,000)
 *   KEEP_LINES           (NO_READER CLIENT_READ_LINES START_SPLIT OPS1=2 SET1=36 SET2=1: 813,000)
 *   RIGHT_LIVE           a split opens the right leaf before its commit (NO_READER: 32,000)
 *   REPEAT_WORDS, LIVE_FIRST   (NO_READER FAILS DEATHS=0; the first also with START_EMPTY SET1=128 SET2=2: 800)
 *   HEAD_EARLY           an absorb commits before the entries are there (NO_READER START_SPLIT: 33,000)
 *   READER_NO_NUMBERS    a reader that skips the numbers (NO_R2 START_SPLIT SET1=32 SET2=2 DEATHS=0: 636,000)
 *   READER_NO_GENERATION a reader that skips the generation (NO_R2 START_FULL SET1=16 SET2=2 DEATHS=0: 2,769,000)
 *   STATE_IN_READ        (NO_R1 DEATHS=0: 5,800)
 *   REPAIR_CLEARS_ALL    the repair clears the bits of live holders, too (NO_READER: 700)
 *   REPAIR_BUMPS (NO_READER: 29,000)    REPAIR_NO_MEND: claims of the dead stay (NO_READER: 1,700)
 *   REPAIR_ONLY_UNLOCKS (NO_READER: 26,000)    SWEEP_LOOKS_AGAIN (NO_READER: 1,401,000)
 *   LINKED_FIRST         (OWNER_READS NO_R1 NO_R2 START_SPLIT SET1=32 SET2=2 RB=1 RK=3: 653,000)
 *   READER_LOCKED_TOO    with LINKED_FIRST: a client that takes locked leaves (NO_R2 START_SPLIT SET1=32 SET2=2 RB=1 RK=3: 4,179,000)
 *
 * DRAFT, a word with counts and intents (each must fail):
 *   OWN_KEYS DEATHS=0 NO_READER SET1=1 SET2=1          the WRITE of the key in the posting of a CAS that failed: another's key is lost
 *   KEY_AFTER_CAS DEATHS=0 NO_READER SET1=1 SET2=1     the next slot after a failed CAS: a key twice
 *   KEY_AFTER_CAS START_OVER DEATHS=0 NO_READER SET1=1 SET2=5 OPS2=2   the same, by a slot that was removed and used again
 *   OWN_KEYS KEY_AFTER_CAS START_OVER DEATHS=0 SET1=1 SET2=1           "clean, and the sum of counters is the version": a key is missed
 *   OWN_KEYS KEY_AFTER_CAS START_OVER NO_READER SET1=1 SET2=1          the repair takes a live client that looks in for the dead one's rest
 *   ... MENDED SET1=17 SET2=17   with the mend for that: repair and a live SMO wait for each other (invalid end state)
 *   ... NO_INTENT SET1=1 SET2=1  no intent before the lock: the leaf stays locked
 *   (... MENDED SET1=1 SET2=1 passes: 12,522.)
 * SKEW passes: 430. SKEW SHARED_IN_TRANSACTIONS must fail: inserts on the IDU side, in the posting of the validation.
 *
 * Not modelled: failed verbs of a live client that begin or end its stay (it READs its bit or the state word), several slots of one line, versions that wrap, inner nodes, whether every operation ends
 * (starvation), a CPU whose atomics differ from the NIC's.
 */
#ifndef OPS1
#define OPS1 1
#endif
#ifndef OPS2
#define OPS2 1
#endif
#ifndef OPS3
#define OPS3 0
#endif
#ifndef SET1
#define SET1 127
#endif
#ifndef SET2
#define SET2 127
#endif
#ifndef SET3
#define SET3 127
#endif
#ifndef DEATHS
#define DEATHS 1
#endif

#if !defined(DRAFT) && !defined(SKEW)

#define NB 2            /* blocks */
#define NS 2            /* slots of a leaf; each has a key line and a target line of its own */
#define NONE NB         /* no right sibling */
#define MID 3           /* where a leaf is split */
#define OWNER 4

/* State word: version (5 bits), generation (5), who has locked it (3; 0: nobody), dead. In the code the generation and
 * the name of the holder share their bits, because nobody needs the generation of a leaf that is locked. */
#define VER(w) ((w) & 31)
#define GEN(w) (((w) >> 5) & 31)
#define OWN(w) (((w) >> 10) & 7)
#define IS_DEAD(w) ((((w) >> 13) & 1) != 0)
#define STATE(v, g, o, d) ((v) | ((g) << 5) | ((o) << 10) | ((d) << 13))
#define LOCKED(w, o) (((w) & ~(7 << 10)) | ((o) << 10))
#define BIT(n) (1 << (n))

/* Key words: 0 free, k in use, CLAIM + k claimed, GONE removed. */
#define CLAIM 4
#define GONE 8
#define IS_KEY(w) ((w) > 0 && (w) < CLAIM)
#define IS_CLAIM(w) ((w) > CLAIM && (w) < GONE)

/* Registered memory. */
short st[NB];                       /* lock line: state word */
byte shared[NB];                    /* lock line: holders word, a bit for each client that is inside in shared mode */
byte hn[NB], lo[NB], hi[NB], rt[NB];                    /* head line: number, fences, right sibling */
byte kn[NB * NS], kw[NB * NS], tn[NB * NS], tw[NB * NS]; /* key and target lines: number, word */
/* The owner's ledger. */
bool is_free[NB];
byte lessee[NB];
/* Ghosts and bookkeeping. */
byte val[4];            /* the value of each key; 0: absent */
bool told[4];           /* a state word has changed since the key was published, by its inserter or later than it */
byte inside[NB];        /* who is alone in the leaf */
byte watch, hist;       /* the reader's key, and the values that it has had since its READ began (bits) */
byte deaths = DEATHS;
bool is_dead[5];
byte running;           /* clients that have not ended */

inline note(k_) { if :: watch == (k_) -> hist = hist | BIT(val[k_]) :: else -> skip fi }
inline publish(k_, v_) { assert(val[k_] == 0); val[k_] = v_; told[k_] = 0; note(k_) }
inline tell(b_) {
  j = lo[b_];
  do :: j < hi[b_] -> told[j] = 1; j++ :: else -> break od;
  j = 0
}
inline bump(b_) { assert(VER(st[b_]) < 31); st[b_] = st[b_] + 1 }

/* A step of a client: one verb, or its death before it. */
#define STEP(what) if :: d_step { what } :: d_step { deaths > 0 -> deaths-- } goto die fi

#define OP_INSERT 1
#define OP_UPDATE 2
#define OP_REMOVE 3
#define OP_XINSERT 4
#define OP_SPLIT 5
#define OP_ABSORB 6
#define OP_TIDY 7
#define OP_TOGETHER 8

/* A posting of a client that lives may fail, after any part of it has taken effect: once for each client. */
#ifdef FAILS
#define MAY_FAIL(to) if :: again -> goto to :: skip fi
#define MAY_FAIL_THEN(to) if :: again -> again = 0; goto to :: skip fi
#define GREATER(number, old) ((number) >= (old))    /* repeated, with the same content */
#else
#define MAY_FAIL(to) skip
#define MAY_FAIL_THEN(to) skip
#define GREATER(number, old) ((number) > (old))
#endif

inline read_head() { ihn = hn[b]; ilo = lo[b]; ihi = hi[b]; irt = rt[b] }
inline read_slot(s_) { ikn[s_] = kn[b * NS + s_]; ikw[s_] = kw[b * NS + s_] }
inline forget() {
  b = 0; k = 0; op = 0; s = 0; v = 0; n = 0; x = 0; g = 0; w = 0; todo = 0; ok = 0; seen = 0; ihn = 0; ilo = 0; ihi = 0; irt = 0;
  ikn[0] = 0; ikn[1] = 0; ikw[0] = 0; ikw[1] = 0; nkw[0] = 0; nkw[1] = 0; ntw[0] = 0; ntw[1] = 0; j = 0
}
inline write_key_line(b_, s_, number) {
  assert(inside[b_] == me && GREATER(number, kn[b_ * NS + s_])); kn[b_ * NS + s_] = number; kw[b_ * NS + s_] = nkw[s_]
}
inline write_target_line(b_, s_, number) {
  assert(inside[b_] == me && GREATER(number, tn[b_ * NS + s_])); tn[b_ * NS + s_] = number; tw[b_ * NS + s_] = ntw[s_]
}
/* The WRITE of all key and target lines: in any order. */
#define WRITE_LINES(b_, number) \
  todo = 15; \
  do \
  :: todo & 1 -> STEP( write_key_line(b_, 0, number); todo = todo & 14 ) \
  :: todo & 2 -> STEP( write_target_line(b_, 0, number); todo = todo & 13 ) \
  :: todo & 4 -> STEP( write_key_line(b_, 1, number); todo = todo & 11 ) \
  :: todo & 8 -> STEP( write_target_line(b_, 1, number); todo = todo & 7 ) \
  :: todo == 0 -> break \
  od; skip
#ifdef KEEP_LINES
/* Only lines that change. */
#define REWRITE_LINES(b_, number) \
  if :: nkw[0] != kw[b_ * NS] -> STEP( write_key_line(b_, 0, number) ); STEP( write_target_line(b_, 0, number) ) :: else -> skip fi; \
  if :: nkw[1] != kw[b_ * NS + 1] -> STEP( write_key_line(b_, 1, number) ); STEP( write_target_line(b_, 1, number) ) :: else -> skip fi
#define AGREE(number) ((number) <= ihn)
#else
#define REWRITE_LINES(b_, number) WRITE_LINES(b_, number)
#define AGREE(number) ((number) == ihn)
#endif

#define ENTER STEP( assert(!(shared[b] & BIT(me))); shared[b] = shared[b] | BIT(me) )
#define LEAVE STEP( assert(shared[b] & BIT(me)); shared[b] = shared[b] & ~BIT(me) )
#define GIVE_BACK STEP( assert(OWN(st[b]) == me); st[b] = LOCKED(st[b], 0); inside[b] = 0 )
#define SHARED_STEP(what) STEP( assert(inside[b] == 0); what )

proctype Client(byte me; byte ops; byte set) {
  byte b, k, op, s, v, n, x, g, w, todo, ihn, ilo, ihi, irt, j;
  byte ikn[NS], ikw[NS], nkw[NS], ntw[NS];
  short seen;
  bool ok;
#ifdef FAILS
  bool again = 1;
#endif

next:
  atomic {
    d_step { forget() }
    if :: ops == 0 -> goto out :: else -> ops-- fi;
    if
    :: set & 1 -> op = OP_INSERT
    :: set & 2 -> op = OP_UPDATE
    :: set & 4 -> op = OP_REMOVE
    :: set & 8 -> op = OP_XINSERT
    :: set & 16 -> op = OP_SPLIT
    :: set & 32 -> op = OP_ABSORB
    :: set & 64 -> op = OP_TIDY
    :: set & 128 -> op = OP_TOGETHER
    fi;
    /* An address from the cache, maybe a stale one. */
    if
    :: op == OP_SPLIT || op == OP_ABSORB -> b = 0
    :: else -> if :: b = 0 :: b = 1 fi
    fi;
    if
    :: op <= OP_XINSERT || op == OP_TOGETHER -> if :: k = 1 :: k = 2 :: k = 3 fi
    :: else -> skip
    fi;
    if
    :: op == OP_TOGETHER -> if :: g = k % 3 + 1 :: g = (k + 1) % 3 + 1 fi      /* another key */
    :: else -> skip
    fi;
    v = me + 1
  }
  if
  :: op <= OP_REMOVE || op == OP_TOGETHER ->
#ifndef LOOK_FIRST
     ENTER;
#endif
#ifdef CLIENT_READ_LINES
     todo = 15;
     do
     :: d_step { todo & 1 -> seen = st[b]; todo = todo & 14 }
     :: d_step { todo & 2 -> read_head(); todo = todo & 13 }
     :: d_step { todo & 4 -> read_slot(0); todo = todo & 11 }
     :: d_step { todo & 8 -> read_slot(1); todo = todo & 7 }
     :: todo == 0 -> break
     od;
#else
     d_step { seen = st[b]; read_head(); read_slot(0); read_slot(1) }
#endif
#ifdef LOOK_FIRST
     ENTER;
#endif
     skip;
     d_step {
       ok = (OWN(seen) == 0 && !IS_DEAD(seen) && GEN(seen) == ihn && AGREE(ikn[0]) && AGREE(ikn[1]) && ilo <= k && k < ihi &&
             (op != OP_TOGETHER || (ilo <= g && g < ihi)));
       seen = 0; ihn = 0; ilo = 0; ihi = 0; irt = 0; ikn[0] = 0; ikn[1] = 0;
#ifdef REUSE_GONE
       if :: op == OP_INSERT && ikw[0] == GONE -> ikw[0] = 0; n = 1 :: else -> skip fi;
#endif
       s = NS;
       if
       :: !ok -> skip
       :: ok && op == OP_INSERT ->
          s = (ikw[0] == 0 -> 0 : (ikw[1] == 0 -> 1 : NS));
          ok = (s < NS && ikw[0] != k && ikw[0] != CLAIM + k && ikw[1] != k && ikw[1] != CLAIM + k)
       :: ok && op == OP_TOGETHER -> s = 0; ok = (ikw[0] == 0 && ikw[1] == 0)
       :: else ->
          s = (ikw[0] == k -> 0 : (ikw[1] == k -> 1 : NS)); ok = (s < NS)
       fi
     }
     if :: !ok -> LEAVE; goto next :: else -> skip fi;
     if
     :: op == OP_INSERT ->
claim:
#ifdef ONE_WORD
        /* Byte keys: one CAS publishes the entry, and the rest of the posting follows in any case. */
        SHARED_STEP( x = kw[b * NS + s]; if :: x == 0 -> kw[b * NS + s] = k; tw[b * NS + s] = v; publish(k, v) :: else -> skip fi );
        STEP( bump(b); if :: x == 0 -> told[k] = 1 :: else -> skip fi );
        LEAVE;
        goto next;
#endif
#ifdef ANY_SLOT
        if :: s == 0 && ikw[1] == 0 -> s = 1 :: skip fi;
#endif
#ifdef REUSE_GONE
        SHARED_STEP( x = kw[b * NS + s]; if :: x == 0 || (x == GONE && n == 1 && s == 0) -> kw[b * NS + s] = CLAIM + k; x = 0 :: else -> skip fi );
#else
#ifdef NO_CLAIM
        SHARED_STEP( x = kw[b * NS + s]; if :: x == 0 -> kw[b * NS + s] = k; publish(k, v) :: else -> skip fi );
#else
        SHARED_STEP( x = kw[b * NS + s]; if :: x == 0 -> kw[b * NS + s] = CLAIM + k :: else -> skip fi );
#endif
#endif
        if
        :: x == 0 -> skip
        :: x != 0 && x != k && x != CLAIM + k && s == 0 && ikw[1] == 0 -> s = 1; goto claim    /* the next free slot */
        :: else -> LEAVE; goto next
        fi;
words:
        SHARED_STEP( tw[b * NS + s] = v );
        MAY_FAIL(resolve);
#ifdef BUMP_EARLY
        STEP( bump(b) );
#endif
#ifdef LEAVE_EARLY
        LEAVE;
#endif
#ifndef NO_CLAIM
#ifdef BUMP_EARLY
        SHARED_STEP( kw[b * NS + s] = k; publish(k, v); told[k] = 1 );
#else
        SHARED_STEP( if :: kw[b * NS + s] != k -> kw[b * NS + s] = k; publish(k, v) :: else -> skip fi );
        MAY_FAIL(resolve);
#endif
#endif
raise:  skip;
#if defined(NO_BUMP)
        STEP( told[k] = 1 );
#elif !defined(BUMP_EARLY)
        STEP( bump(b); told[k] = 1 );
#endif
        MAY_FAIL(resolve);
#ifndef LEAVE_EARLY
        LEAVE;
#endif
        goto next
#ifdef FAILS
resolve: skip;
        /* The client READs its bit, which is set, and the key word. The claim is its own: nobody else changes it. */
        d_step { again = 0; ok = (kw[b * NS + s] == CLAIM + k) }
#ifdef REPEAT_WORDS
        ok = 1;
#endif
        if :: ok -> goto words :: else -> goto raise fi
#endif
     :: op == OP_UPDATE ->
        SHARED_STEP(
          tw[b * NS + s] = v;
          if
          :: kw[b * NS + s] == k -> assert(val[k] != 0); val[k] = v; note(k)
          :: else -> if :: watch == k && (hist & ~1) != 0 -> hist = hist | BIT(v) :: else -> skip fi    /* it came before the removal */
          fi );
        LEAVE
     :: op == OP_REMOVE ->
        SHARED_STEP( ok = (kw[b * NS + s] == k); if :: ok -> kw[b * NS + s] = GONE; val[k] = 0; note(k) :: else -> skip fi );
        STEP( bump(b) );
        LEAVE
     :: op == OP_TOGETHER ->
        /* Two inserts of one stay, of k and of g, each into the lowest free slot that is left. If the CAS of the first one has
         * found the key of the second one, that is void, although its slot was free. x: which are made (bits); todo: whose
         * words are written; n: the second one is void. */
#ifdef ANY_SLOT
        if :: s = 1 :: skip fi;
#endif
        SHARED_STEP( x = kw[b * NS + s]; if :: x == 0 -> kw[b * NS + s] = CLAIM + k :: else -> skip fi );
        SHARED_STEP( w = kw[b * NS + 1 - s]; if :: w == 0 -> kw[b * NS + 1 - s] = CLAIM + g :: else -> skip fi );
        d_step {
#ifndef NOT_VOID
          n = (w == 0 && (x == g || x == CLAIM + g) -> 1 : 0);
#endif
          x = (x == 0 -> 1 : 0) | (w == 0 && n == 0 -> 2 : 0); w = 0; todo = x
        }
        if :: x == 0 && n == 0 -> LEAVE; goto next :: else -> skip fi;
together:
        if
        :: todo & 1 ->
           SHARED_STEP( tw[b * NS + s] = v );
           MAY_FAIL(retogether);
           SHARED_STEP( if :: kw[b * NS + s] != k -> kw[b * NS + s] = k; publish(k, v) :: else -> skip fi );
           MAY_FAIL(retogether)
        :: else -> skip
        fi;
        if
        :: todo & 2 ->
           SHARED_STEP( tw[b * NS + 1 - s] = v );
           MAY_FAIL(retogether);
           SHARED_STEP( if :: kw[b * NS + 1 - s] != g -> kw[b * NS + 1 - s] = g; publish(g, v) :: else -> skip fi );
           MAY_FAIL(retogether)
        :: n == 1 ->
           SHARED_STEP( kw[b * NS + 1 - s] = GONE );
           MAY_FAIL(retogether)
        :: else -> skip
        fi;
        STEP( bump(b); if :: x & 1 -> told[k] = 1 :: else -> skip fi; if :: x & 2 -> told[g] = 1 :: else -> skip fi );
        MAY_FAIL(retogether);
        LEAVE;
        goto next
#ifdef FAILS
retogether: skip;
        /* The words of an insert are written again while its slot has its claim. */
        d_step {
          again = 0;
#ifndef REPEAT_WORDS
          if :: kw[b * NS + s] != CLAIM + k -> todo = todo & 2 :: else -> skip fi;
          if :: kw[b * NS + 1 - s] != CLAIM + g -> todo = todo & 1 :: else -> skip fi
#endif
        }
        goto together
#endif
     fi
  :: else ->
     STEP( ok = (OWN(st[b]) == 0 && !IS_DEAD(st[b])); if :: ok -> st[b] = LOCKED(st[b], me) :: else -> skip fi );
     if :: !ok -> goto next :: else -> skip fi;
#ifdef GIVE_UP
     if :: GIVE_BACK; goto next :: skip fi;
#endif
#ifdef NO_DRAIN
     STEP( inside[b] = me );
#else
     STEP( shared[b] == 0 -> inside[b] = me );
#endif
     d_step {
       read_head();
       nkw[0] = kw[b * NS]; nkw[1] = kw[b * NS + 1]; ntw[0] = tw[b * NS]; ntw[1] = tw[b * NS + 1];
       w = VER(st[b]); g = w + 1;
       if
       :: op == OP_XINSERT ->
          s = (nkw[0] == 0 -> 0 : (nkw[1] == 0 -> 1 : NS));
          ok = (s < NS && ilo <= k && k < ihi && nkw[0] != k && nkw[1] != k)
       :: op == OP_SPLIT -> n = 1; ok = (ihi > MID && is_free[1])
       :: op == OP_ABSORB -> n = irt; ok = (n != NONE)
       :: else -> ok = 1
       fi;
       ihn = 0
     }
     if :: !ok -> GIVE_BACK; goto next :: else -> skip fi;
     if
     :: op == OP_XINSERT ->
        STEP( tw[b * NS + s] = v );
        STEP( kw[b * NS + s] = k; publish(k, v) );
        STEP( assert(OWN(st[b]) == me && VER(st[b]) == w); st[b] = LOCKED(st[b] + 1, 0); inside[b] = 0; tell(b) )
     :: op == OP_TIDY ->
        d_step {
          if :: nkw[0] >= CLAIM -> nkw[0] = 0; ntw[0] = 0 :: else -> skip fi;
          if :: nkw[1] >= CLAIM -> nkw[1] = 0; ntw[1] = 0 :: else -> skip fi
        }
retidy: REWRITE_LINES(b, g);
        MAY_FAIL_THEN(retidy);
        STEP( hn[b] = g );
        MAY_FAIL_THEN(retidy);
        STEP( assert(OWN(st[b]) == me && VER(st[b]) == w); st[b] = STATE(g, g, 0, 0); inside[b] = 0; tell(b) )
     :: op == OP_SPLIT ->
        d_step {
          ok = (is_free[n] && OWN(st[n]) == 0 && IS_DEAD(st[n]));
          if :: ok -> is_free[n] = 0; lessee[n] = me; x = VER(st[n]) + 1 :: else -> skip fi
        }
        if :: !ok -> GIVE_BACK; goto next :: else -> skip fi;
        STEP( ok = (OWN(st[n]) == 0 && IS_DEAD(st[n])); if :: ok -> st[n] = LOCKED(st[n], me); inside[n] = me :: else -> skip fi );
        if :: !ok -> d_step { is_free[n] = 1; lessee[n] = 0 } GIVE_BACK; goto next :: else -> skip fi;
        d_step {          /* what goes to the right leaf */
          s = 0;
          if :: nkw[0] >= MID && nkw[0] < CLAIM -> s = 1 :: else -> skip fi;
          if :: nkw[1] >= MID && nkw[1] < CLAIM -> s = s | 2 :: else -> skip fi;
          ikw[0] = nkw[0]; ikw[1] = nkw[1]; ikn[0] = ntw[0]; ikn[1] = ntw[1]
        }
resplit: skip;
        d_step {
          nkw[0] = ikw[0]; nkw[1] = ikw[1]; ntw[0] = ikn[0]; ntw[1] = ikn[1];
          if :: !(s & 1) -> nkw[0] = 0; ntw[0] = 0 :: else -> skip fi;
          if :: !(s & 2) -> nkw[1] = 0; ntw[1] = 0 :: else -> skip fi
        }
        STEP( hn[n] = x; lo[n] = MID; hi[n] = ihi; rt[n] = irt );
        WRITE_LINES(n, x);
        MAY_FAIL_THEN(resplit);
#ifdef RIGHT_LIVE
        STEP( st[n] = STATE(x, x, 0, 0); inside[n] = 0; tell(n); lessee[n] = 0 );
#endif
        STEP( assert(inside[b] == me); hn[b] = g; hi[b] = MID; rt[b] = n );      /* commits */
        MAY_FAIL_THEN(resplit);
        d_step {          /* what stays */
          nkw[0] = ((s & 1) || ikw[0] >= CLAIM -> 0 : ikw[0]); nkw[1] = ((s & 2) || ikw[1] >= CLAIM -> 0 : ikw[1]);
          ntw[0] = (nkw[0] == 0 -> 0 : ikn[0]); ntw[1] = (nkw[1] == 0 -> 0 : ikn[1])
        }
        REWRITE_LINES(b, g);
        MAY_FAIL_THEN(resplit);
#if defined(LIVE_FIRST) && !defined(RIGHT_LIVE)
        STEP( st[n] = STATE(x, x, 0, 0); inside[n] = 0; tell(n); lessee[n] = 0 );
        MAY_FAIL_THEN(resplit);
#endif
        STEP( assert(OWN(st[b]) == me && VER(st[b]) == w); st[b] = STATE(g, g, 0, 0); inside[b] = 0; tell(b) );
#if !defined(LIVE_FIRST) && !defined(RIGHT_LIVE)
        /* Last: as long as the left leaf is locked, the right one is, too, so that the posting can be repeated. */
        STEP( st[n] = STATE(x, x, 0, 0); inside[n] = 0; tell(n); lessee[n] = 0 )
#endif
     :: op == OP_ABSORB ->
        STEP( ok = (OWN(st[n]) == 0 && !IS_DEAD(st[n])); if :: ok -> st[n] = LOCKED(st[n], me) :: else -> skip fi );
        if :: !ok -> GIVE_BACK; goto next :: else -> skip fi;
#ifdef NO_DRAIN_RIGHT
        STEP( inside[n] = me );
#else
        STEP( shared[n] == 0 -> inside[n] = me );
#endif
        d_step {
          ok = (lo[n] == ihi);
          if :: nkw[0] >= CLAIM -> nkw[0] = 0 :: else -> skip fi;
          if :: nkw[1] >= CLAIM -> nkw[1] = 0 :: else -> skip fi;
          s = 0;
          do
          :: s < NS ->
             x = kw[n * NS + s];
             if
             :: IS_KEY(x) ->
                if
                :: nkw[0] == 0 -> nkw[0] = x; ntw[0] = tw[n * NS + s]
                :: nkw[0] != 0 && nkw[1] == 0 -> nkw[1] = x; ntw[1] = tw[n * NS + s]
                :: else -> ok = 0
                fi
             :: else -> skip
             fi;
             s++
          :: else -> break
          od;
          if :: nkw[0] == 0 -> ntw[0] = 0 :: else -> skip fi;
          if :: nkw[1] == 0 -> ntw[1] = 0 :: else -> skip fi;
          x = VER(st[n]) + 1; ihi = hi[n]; irt = rt[n]
        }
        if
        :: !ok ->
           STEP( st[n] = LOCKED(st[n], 0); inside[n] = 0 );
           GIVE_BACK; goto next
        :: else -> skip
        fi;
reabsorb:
#ifdef HEAD_EARLY
        STEP( assert(inside[b] == me && inside[n] == me); hn[b] = g; hi[b] = ihi; rt[b] = irt );
        REWRITE_LINES(b, g);
#else
        REWRITE_LINES(b, g);
        MAY_FAIL_THEN(reabsorb);
        STEP( assert(inside[b] == me && inside[n] == me); hn[b] = g; hi[b] = ihi; rt[b] = irt );     /* commits */
#endif
#ifdef VERSION_RETURNS
        STEP( st[n] = STATE(1, 0, 0, 1); inside[n] = 0; is_free[n] = 1 );
#else
        STEP( st[n] = STATE(x, 0, 0, 1); inside[n] = 0; is_free[n] = 1 );
#endif
        STEP( assert(OWN(st[b]) == me && VER(st[b]) == w); st[b] = STATE(g, g, 0, 0); inside[b] = 0; tell(b) )
     fi
  fi;
  goto next;

die: skip;
  d_step { forget(); is_dead[me] = 1; ops = 0; set = 0 };
out: skip;
  d_step { forget(); running--; set = 0 }
}

/* ---- the owner ------------------------------------------------------------------------------------------------------- */

#define LIVE_SHARERS(b_) (shared[b_] & ((is_dead[1] -> 0 : 2) | (is_dead[2] -> 0 : 4) | (is_dead[3] -> 0 : 8)))
#define HELD_BY_DEAD(b_) \
  ((OWN(st[b_]) == 1 && is_dead[1]) || (OWN(st[b_]) == 2 && is_dead[2]) || (OWN(st[b_]) == 3 && is_dead[3]))
/* g: above all numbers and versions of the block */
inline greatest() {
  d_step {
    g = VER(st[b]); i = 0;
    g = (hn[b] > g -> hn[b] : g);
    do
    :: i < NS ->
       g = (kn[b * NS + i] > g -> kn[b * NS + i] : g);
       g = (tn[b * NS + i] > g -> tn[b * NS + i] : g);
       i++
    :: else -> break
    od;
    g++; i = 0
  }
}
inline mend_claim(s_) { if :: IS_CLAIM(kw[b * NS + s_]) -> kw[b * NS + s_] = GONE :: else -> skip fi }

proctype Owner() {
  byte c, b, x, i, g, touched, reached, j;
  byte ikw[NS];
  bool yes;

  do
  :: is_dead[1] || is_dead[2] || is_dead[3] ->
     d_step {
       c = (is_dead[1] -> 1 : (is_dead[2] -> 2 : 3));
       /* What the chain reaches, once, before anything is repaired. */
       b = 0; reached = 0;
       do :: b != NONE -> reached = reached | BIT(b); b = rt[b] :: else -> break od;
       b = 0; touched = 0
     }
     /* Its bits in holders words. */
     do
     :: b == NB -> break
     :: b < NB && (shared[b] & BIT(c)) ->
        touched = touched | BIT(b);
#ifdef REPAIR_BUMPS
        d_step { if :: !IS_DEAD(st[b]) -> bump(b) :: else -> skip fi }
#endif
#ifdef REPAIR_CLEARS_ALL
        d_step { shared[b] = 0; b++ }
#else
        d_step { shared[b] = shared[b] & ~BIT(c); b++ }
#endif
     :: b < NB && !(shared[b] & BIT(c)) -> b++
     od;
#ifndef LINKED_FIRST
     /* What it had locked, and the chain does not reach: a right leaf that is not linked yet, or one that was absorbed.
      * Nobody is inside. */
     b = 0;
     do
     :: b == NB -> break
     :: b < NB && OWN(st[b]) == c && !(reached & BIT(b)) -> greatest(); d_step { st[b] = STATE(g, 0, 0, 1); inside[b] = 0; g = 0; b++ }
     :: b < NB && (OWN(st[b]) != c || (reached & BIT(b))) -> b++
     od;
#endif
     b = 0;
     do
     :: b == NB -> break
     :: b < NB && OWN(st[b]) == c ->          /* nobody can enter */
        LIVE_SHARERS(b) == 0;
        greatest();
        d_step { inside[b] = OWNER; yes = ((reached & BIT(b)) != 0) }
        if
        :: !yes -> d_step { st[b] = STATE(g, 0, 0, 1); inside[b] = 0 }
        :: else ->
#ifdef REPAIR_ONLY_UNLOCKS
           d_step { st[b] = LOCKED(st[b] + 1, 0); inside[b] = 0; i = 0 }
#else
           do
           :: i < NS ->
              d_step {
                x = kw[b * NS + i];
                ikw[i] = ((!IS_KEY(x) || x < lo[b] || x >= hi[b]) -> 0 : x);
                kn[b * NS + i] = g; kw[b * NS + i] = ikw[i]; x = 0
              }
              d_step { tn[b * NS + i] = g; if :: ikw[i] == 0 -> tw[b * NS + i] = 0 :: else -> skip fi; ikw[i] = 0; i++ }
           :: else -> break
           od;
           skip;
           d_step { hn[b] = g }
           d_step { st[b] = STATE(g, g, 0, 0); inside[b] = 0; tell(b); i = 0 }
#endif
        fi;
        d_step { g = 0; yes = 0; b++ }
     :: b < NB && OWN(st[b]) != c && (touched & BIT(b)) ->
#ifndef REPAIR_NO_MEND
        if
        :: atomic { OWN(st[b]) == 0 && !IS_DEAD(st[b]) -> st[b] = LOCKED(st[b], OWNER) }
           LIVE_SHARERS(b) == 0;
           d_step { inside[b] = OWNER; mend_claim(0); mend_claim(1) }
           d_step { assert(VER(st[b]) < 31); st[b] = LOCKED(st[b] + 1, 0); inside[b] = 0; tell(b) }
        :: atomic { (OWN(st[b]) == 0 && IS_DEAD(st[b])) || HELD_BY_DEAD(b) -> skip }    /* then that one's repair mends it */
        fi;
#endif
        b++
     :: b < NB && OWN(st[b]) != c && !(touched & BIT(b)) -> b++
     od;
     skip;
     d_step {                                 /* the sweep */
       b = 1;
#ifdef SWEEP_LOOKS_AGAIN
       yes = (rt[0] == 1);
#else
       yes = ((reached & BIT(b)) != 0);
#endif
       if
       :: lessee[b] == c ->
          lessee[b] = 0;
          if :: !yes -> assert(IS_DEAD(st[b]) && OWN(st[b]) == 0); is_free[b] = 1 :: else -> skip fi
       :: else -> skip
       fi;
       /* dead, and given back by nobody */
       if :: !is_free[b] && lessee[b] == 0 && IS_DEAD(st[b]) && OWN(st[b]) == 0 -> is_free[b] = 1 :: else -> skip fi;
       b = 0; touched = 0; reached = 0; yes = 0
     }
     d_step { is_dead[c] = 0; c = 0 }
  :: running == 0 && !is_dead[1] && !is_dead[2] && !is_dead[3] -> break
  od;

  skip;
  d_step {                                    /* P4 */
    b = 0; x = 0; touched = 0;                /* touched: blocks that were reached; x: keys that were found */
    do
    :: b != NONE ->
       touched = touched | BIT(b);
       assert(OWN(st[b]) == 0 && !IS_DEAD(st[b]) && shared[b] == 0 && inside[b] == 0);
       assert(GEN(st[b]) == hn[b]);
       assert(rt[b] == NONE || lo[rt[b]] == hi[b]);
       i = 0;
       do
       :: i < NS ->
#ifndef KEEP_LINES
          assert(kn[b * NS + i] == hn[b] && tn[b * NS + i] == hn[b]);
#endif
          g = kw[b * NS + i];
          assert(!IS_CLAIM(g));
          if
          :: IS_KEY(g) ->
             assert(lo[b] <= g && g < hi[b]);
             assert(!(x & BIT(g)));                            /* once */
             x = x | BIT(g);
             assert(tw[b * NS + i] == val[g])                  /* no update is lost */
          :: g == 0 -> assert(tw[b * NS + i] == 0)
          :: else -> skip
          fi;
          i++
       :: else -> break
       od;
       b = rt[b]
    :: else -> break
    od;
    assert(((x & 2) != 0) == (val[1] != 0) && ((x & 4) != 0) == (val[2] != 0) && ((x & 8) != 0) == (val[3] != 0));
    b = 0;
    do
    :: b < NB -> assert((touched & BIT(b)) || (IS_DEAD(st[b]) && OWN(st[b]) == 0 && is_free[b] && shared[b] == 0)); b++
    :: else -> break
    od
  }
}

/* ---- the reader ------------------------------------------------------------------------------------------------------ */

#ifdef READER_LOCKED_TOO
#define STATE_OK (!IS_DEAD(seen))
#else
#define STATE_OK (OWN(seen) == 0 && !IS_DEAD(seen))
#endif
#ifdef READER_NO_GENERATION
#define TIED true
#else
#define TIED (OWN(seen) != 0 || GEN(seen) == ihn)
#endif
#ifdef READER_NO_NUMBERS
#define NUMBERS(a_, b_) true
#else
#define NUMBERS(a_, b_) (AGREE(a_) && AGREE(b_))
#endif

#ifdef RB
#define CHOOSE_B b = RB
#else
#define CHOOSE_B if :: b = 0 :: b = 1 fi
#endif
#ifdef RK
#define CHOOSE_K k = RK
#else
#define CHOOSE_K if :: k = 1 :: k = 2 :: k = 3 fi
#endif

proctype Reader() {
  byte b, k, todo, ihn, ilo, ihi, answer;
  byte ikn[NS], ikw[NS], itn[NS], itw[NS];
  short seen;
  bool ok;

  if
#ifndef NO_R1
  :: /* One READ. */
     atomic { CHOOSE_B; CHOOSE_K; watch = k; hist = BIT(val[k]) }
     todo = 63;
     do
     :: d_step { todo & 1 -> seen = st[b]; todo = todo & 62 }
     :: d_step { todo & 2 -> ihn = hn[b]; ilo = lo[b]; ihi = hi[b]; todo = todo & 61 }
     :: d_step { todo & 4 -> ikn[0] = kn[b * NS]; ikw[0] = kw[b * NS]; todo = todo & 59 }
     :: d_step { todo & 8 -> itn[0] = tn[b * NS]; itw[0] = tw[b * NS]; todo = todo & 55 }
     :: d_step { todo & 16 -> ikn[1] = kn[b * NS + 1]; ikw[1] = kw[b * NS + 1]; todo = todo & 47 }
     :: d_step { todo & 32 -> itn[1] = tn[b * NS + 1]; itw[1] = tw[b * NS + 1]; todo = todo & 31 }
     :: todo == 0 -> break
     od;
     skip;
     d_step {
       ok = (STATE_OK && TIED && ilo <= k && k < ihi && NUMBERS(ikn[0], itn[0]) && NUMBERS(ikn[1], itn[1]));
       if
       :: ok ->
          answer = (ikw[0] == k -> itw[0] : (ikw[1] == k -> itw[1] : 0));
          assert(hist & BIT(answer))                           /* P1 */
       :: else -> skip
       fi;
       watch = 0; hist = 0; seen = 0; b = 0; k = 0; ok = 0; answer = 0; ihn = 0; ilo = 0; ihi = 0;
       ikn[0] = 0; ikn[1] = 0; ikw[0] = 0; ikw[1] = 0; itn[0] = 0; itn[1] = 0; itw[0] = 0; itw[1] = 0
     }
#endif
#ifdef OWNER_READS
  :: /* The owner's CPU: the state word, the lines, the state word again. It takes leaves that are locked, too. */
     atomic { CHOOSE_B; CHOOSE_K; watch = k; hist = BIT(val[k]) }
     d_step { seen = st[b] }
     d_step { ihn = hn[b]; ilo = lo[b]; ihi = hi[b] }
     d_step { ikn[0] = kn[b * NS]; ikw[0] = kw[b * NS] }
     d_step { ikn[1] = kn[b * NS + 1]; ikw[1] = kw[b * NS + 1] }
     d_step { itn[0] = tn[b * NS]; itw[0] = tw[b * NS] }
     d_step { itn[1] = tn[b * NS + 1]; itw[1] = tw[b * NS + 1] }
     skip;
     d_step {
       ok = (st[b] == seen && !IS_DEAD(seen) && (OWN(seen) != 0 || GEN(seen) == ihn) && ilo <= k && k < ihi &&
             NUMBERS(ikn[0], itn[0]) && NUMBERS(ikn[1], itn[1]));
       if
       :: ok ->
          answer = (ikw[0] == k -> itw[0] : (ikw[1] == k -> itw[1] : 0));
          assert(hist & BIT(answer));                          /* P1 */
          seen = LOCKED(seen, 0)
       :: else -> seen = 0; k = 0; b = 0
       fi;
       watch = 0; hist = 0; ihn = 0; ilo = 0; ihi = 0;
       ikn[0] = 0; ikn[1] = 0; ikw[0] = 0; ikw[1] = 0; itn[0] = 0; itn[1] = 0; itw[0] = 0; itw[1] = 0
     }
     if
     :: ok ->
        d_step {
          assert(!(st[b] == seen) || answer != 0 || val[k] == 0 || !told[k]);                             /* P2 */
          ok = 0; answer = 0; seen = 0; b = 0; k = 0
        }
     :: else -> skip
     fi
#endif
#ifndef NO_R2
  :: /* An answer with a witness: an FAA of 0 on the state word, then the READ; later the validation. */
     atomic { CHOOSE_B; seen = st[b] }
     todo = 15;
     do
#ifdef STATE_IN_READ
     :: d_step { todo & 1 -> seen = st[b]; todo = todo & 14 }
#else
     :: todo & 1 -> todo = todo & 14
#endif
     :: d_step { todo & 2 -> ihn = hn[b]; ilo = lo[b]; ihi = hi[b]; todo = todo & 13 }
     :: d_step { todo & 4 -> ikn[0] = kn[b * NS]; ikw[0] = kw[b * NS]; todo = todo & 11 }
     :: d_step { todo & 8 -> ikn[1] = kn[b * NS + 1]; ikw[1] = kw[b * NS + 1]; todo = todo & 7 }
     :: todo == 0 -> break
     od;
     skip;
     d_step {
       ok = (STATE_OK && TIED && NUMBERS(ikn[0], ikn[1]));
       if
       :: ok ->
          answer = (IS_KEY(ikw[0]) -> BIT(ikw[0]) : 0) | (IS_KEY(ikw[1]) -> BIT(ikw[1]) : 0)
       :: else -> seen = 0; ilo = 0; ihi = 0; b = 0
       fi;
       ikn[0] = 0; ikn[1] = 0; ikw[0] = 0; ikw[1] = 0; ihn = 0
     }
     if
     :: ok ->
        d_step {
          if
          :: st[b] == seen ->
             do
             :: ilo < ihi -> assert((answer & BIT(ilo)) || val[ilo] == 0 || !told[ilo]); ilo++       /* P2 */
             :: else -> break
             od
          :: else -> skip
          fi;
          ok = 0; answer = 0; ilo = 0; ihi = 0; seen = 0; b = 0
        }
     :: else -> skip
     fi
#endif
  fi
}

init {
  d_step {
    st[0] = STATE(1, 1, 0, 0); hn[0] = 1; lo[0] = 1; hi[0] = 4; rt[0] = NONE;
    kn[0] = 1; kn[1] = 1; tn[0] = 1; tn[1] = 1;
    kw[0] = 1; tw[0] = 1; val[1] = 1; told[1] = 1;
    /* Block 1 was a leaf once: that is what a stale address leads to. */
    st[1] = STATE(1, 0, 0, 1); hn[1] = 1; lo[1] = MID; hi[1] = 4; rt[1] = NONE; is_free[1] = 1;
    kn[2] = 1; kn[3] = 1; tn[2] = 1; tn[3] = 1; kw[2] = 3; tw[2] = 5
#ifdef START_EMPTY
    ; kw[0] = 0; tw[0] = 0; val[1] = 0
#endif
#ifdef START_FULL
    ; kw[1] = 3; tw[1] = 1; val[3] = 1; told[3] = 1
#endif
#ifdef START_SPLIT
    ; hi[0] = MID; rt[0] = 1; st[1] = STATE(1, 1, 0, 0); is_free[1] = 0; tw[2] = 1; val[3] = 1; told[3] = 1
#endif
  }
  atomic {
#ifdef ONE_NODE
    running = 2; run Client(1, OPS1, SET1); run Client(1, OPS2, SET2);
#else
    running = 2; run Client(1, OPS1, SET1); run Client(2, OPS2, SET2);
#endif
    if :: OPS3 > 0 -> running = 3; run Client(3, OPS3, SET3) :: else -> skip fi;
    run Owner()
#ifndef NO_READER
    ; run Reader()
#endif
  }
}
#endif

/* ==== the lock of the first draft ====================================================================================== */
#ifdef DRAFT

/* One leaf. Its word counts: | SMOs | shared | version |. A client names itself only in its intent. A slot: a line counter,
 * the record, the key. */
#define NS 2
#define BIT(n) (1 << (n))
byte w_ver, w_idu, w_smo;
byte cnt[NS], rec[NS], key[NS];
byte intent[4];         /* 0: none; 1: insert or remove; 2: SMO */
byte expected[NS];      /* ghost: the key of the client whose CAS took the slot */
byte truth;             /* ghost: keys that are in the leaf (bits) */
byte inside;
byte deaths = DEATHS;
bool is_dead[4];
byte running = 2;

#define STEP(what) if :: d_step { what } :: d_step { deaths > 0 -> deaths-- } goto die fi
#ifdef MENDED
#define BUMPS(n) 1      /* whoever leaves changes the word */
#else
#define BUMPS(n) (n)
#endif
#define LEAVE(bumps) STEP( assert(w_idu > 0); w_idu--; w_ver = w_ver + BUMPS(bumps) ); STEP( intent[me] = 0 )

proctype Client(byte me; byte ops; byte set) {
  byte op, k, s, x;
  byte irec[NS], ikey[NS];
next:
  atomic {
    d_step { k = 0; s = 0; x = 0; irec[0] = 0; irec[1] = 0; ikey[0] = 0; ikey[1] = 0; op = 0 }
    if :: ops == 0 -> goto out :: else -> ops-- fi;
    if :: set & 1 -> op = 1 :: set & 4 -> op = 3 :: set & 16 -> op = 5 fi;
#ifdef OWN_KEYS
    k = me
#else
    if :: k = 1 :: k = 2 fi
#endif
  }
  if
  :: op != 5 ->
#ifndef NO_INTENT
     STEP( intent[me] = 1 );
#endif
     STEP( w_idu++; x = w_smo );
     d_step { irec[0] = rec[0]; irec[1] = rec[1]; ikey[0] = key[0]; ikey[1] = key[1] }
     if
     :: x > 0 -> LEAVE(0); goto next
     :: else -> skip
     fi;
     if
     :: op == 1 ->
        if
        :: (irec[0] != 0 && ikey[0] == k) || (irec[1] != 0 && ikey[1] == k) -> LEAVE(0); goto next
        :: else -> s = (irec[0] == 0 -> 0 : (irec[1] == 0 -> 1 : NS))
        fi;
        if :: s == NS -> LEAVE(0); goto next :: else -> skip fi;
retry:
        STEP( assert(inside == 0); x = rec[s]; if :: x == 0 -> rec[s] = me; expected[s] = k :: else -> skip fi );
#ifdef KEY_AFTER_CAS
        if
        :: x == 0 -> skip
#ifndef START_OVER
        :: x != 0 && s == 0 && irec[1] == 0 -> s = 1; goto retry        /* "retry in a new empty slot" */
#endif
        :: else -> LEAVE(0); goto next
        fi;
#endif
        /* These are in the posting of the CAS. */
        STEP( key[s] = k; if :: x == 0 -> truth = truth | BIT(k) :: else -> skip fi );
        STEP( cnt[s] = cnt[s] + 1 );
        LEAVE(1)
     :: else ->
        s = ((irec[0] != 0 && ikey[0] == k) -> 0 : ((irec[1] != 0 && ikey[1] == k) -> 1 : NS));
        if :: s == NS -> LEAVE(0); goto next :: else -> skip fi;
        STEP( assert(inside == 0); x = rec[s]; if :: x == irec[s] -> rec[s] = 0; truth = truth & ~BIT(k) :: else -> x = 0 fi );
        if :: x == 0 -> LEAVE(0); goto next :: else -> skip fi;
        STEP( cnt[s] = cnt[s] + 1 );
        LEAVE(1)
     fi
  :: else ->
     STEP( intent[me] = 2 );
     STEP( x = w_smo; w_smo++ );
     if
     :: x > 0 -> STEP( assert(w_smo > 0); w_smo--; w_ver = w_ver + BUMPS(0) ); STEP( intent[me] = 0 ); goto next
     :: else -> skip
     fi;
     STEP( w_idu == 0 -> inside = me );
     STEP( inside = 0; assert(w_smo > 0); w_smo--; w_ver = w_ver + BUMPS(0) );
     STEP( intent[me] = 0 )
  fi;
  goto next;
die: skip;
  d_step { k = 0; s = 0; x = 0; irec[0] = 0; irec[1] = 0; ikey[0] = 0; ikey[1] = 0; op = 0; ops = 0; is_dead[me] = 1 };
out: skip;
  d_step { running--; set = 0; op = 0 }
}

proctype Owner() {
  byte c, idu, smo, i;
  do
  :: is_dead[1] || is_dead[2] ->
     c = (is_dead[1] -> 1 : 2);
     if
     :: intent[c] != 0 ->
        w_smo++;                                      /* so that the others drain */
#ifdef MENDED
look:   skip;
        d_step { idu = w_idu; smo = w_smo; i = w_ver }
        (is_dead[1] || intent[1] == 0) && (is_dead[2] || intent[2] == 0);
        if :: w_ver == i && w_idu == idu && w_smo == smo -> skip :: else -> goto look fi;
        i = 0;
#else
        (is_dead[1] || intent[1] == 0) && (is_dead[2] || intent[2] == 0);
        d_step { idu = w_idu; smo = w_smo }           /* what is left is the dead one's */
#endif
        d_step { assert(w_idu >= idu && w_smo >= smo); w_idu = w_idu - idu; w_smo = w_smo - smo; if :: inside == c -> inside = 0 :: else -> skip fi }
        d_step { intent[c] = 0; idu = 0; smo = 0 }
     :: else -> skip
     fi;
     d_step { is_dead[c] = 0; c = 0 }
  :: running == 0 && !is_dead[1] && !is_dead[2] -> break
  od;
  skip;
  d_step {
    assert(w_idu == 0 && w_smo == 0);
    i = 0;
    do
    :: i < NS -> assert(rec[i] == 0 || key[i] == expected[i] || key[i] == 0); i++      /* nobody's key was overwritten */
    :: else -> break
    od;
    assert(rec[0] == 0 || rec[1] == 0 || key[0] != key[1] || key[0] == 0)               /* no key twice */
  }
}

proctype Reader() {
  byte ver, idu, smo, todo, answer, c[NS], r[NS], k[NS];
  todo = 127;
  do
  :: d_step { todo & 1 -> ver = w_ver; idu = w_idu; smo = w_smo; todo = todo & 126 }
  :: d_step { todo & 2 -> c[0] = cnt[0]; todo = todo & 125 }
  :: d_step { todo & 4 -> r[0] = rec[0]; todo = todo & 123 }
  :: d_step { todo & 8 -> k[0] = key[0]; todo = todo & 119 }
  :: d_step { todo & 16 -> c[1] = cnt[1]; todo = todo & 111 }
  :: d_step { todo & 32 -> r[1] = rec[1]; todo = todo & 95 }
  :: d_step { todo & 64 -> k[1] = key[1]; todo = todo & 63 }
  :: todo == 0 -> break
  od;
  if
  :: idu == 0 && smo == 0 && c[0] + c[1] == ver ->
     d_step {
       answer = (r[0] != 0 -> BIT(k[0]) : 0) | (r[1] != 0 -> BIT(k[1]) : 0);
       if
       :: w_ver == ver && w_idu == 0 && w_smo == 0 -> assert((answer & 6) == truth)     /* the witness holds */
       :: else -> skip
       fi
     }
  :: else -> skip
  fi
}

init {
  atomic {
    run Client(1, OPS1, SET1 & 21); run Client(2, OPS2, SET2 & 21); run Owner()
#ifndef NO_READER
    ; run Reader()
#endif
  }
}
#endif

/* ==== inserts of two transactions, at two owners ======================================================================== */
#ifdef SKEW

/* Transaction i has seen a gap of the leaf at the other owner, with its word, and inserts into the leaf at its own. It may
 * commit if the word is as seen. Verbs to different nodes, in one posting, are not ordered. */
byte word[2], seen[2];
bool locked[2], commits[2];

proctype Transaction(byte i) {
  bool changed, looked;
  atomic { !locked[1 - i]; seen[i] = word[1 - i] }
#ifndef SHARED_IN_TRANSACTIONS
  atomic { if :: locked[i] -> goto out :: else -> locked[i] = 1 fi }          /* a posting of its own */
#endif
  do
  :: !changed -> atomic { word[i]++; locked[i] = 0; changed = 1 }
  :: !looked -> atomic { commits[i] = (word[1 - i] == seen[i] && !locked[1 - i]); looked = 1 }
  :: changed && looked -> break
  od;
  assert(!(commits[0] && commits[1] && seen[0] == 0 && seen[1] == 0));     /* not both without the other's key */
out: skip
}
init { atomic { run Transaction(0); run Transaction(1) } }
#endif
