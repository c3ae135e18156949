/* leaf.pml: the leaf that clients change by verbs (index/shared_leaf/), as a model for SPIN 6.5: "line 0 is the commit
 * point of every change".
 *
 * What is modelled. NB blocks of memory of one owner; block 0 is the leaf, the others are free blocks that a split takes
 * as right sibling. A block has line 0 (state word, bitmap, low, high, right, version of each slot line) and NL slot
 * lines (version, NP pairs). One step of a process accesses one line, whole (rdma/fabric.h, 2). The lines of one READ are
 * seen in any order, and so are the lines of the one WRITE that fills a right leaf. The WRITEs of one client take effect
 * in the order posted (rdma/fabric.h, 3). A client may die between any two of its steps, and takes no step after that
 * (rdma/fabric.h, 5).
 *
 * Processes. Two clients: insert, remove, replace, split, absorb, and a lock that is given back before or after a line
 * was written. Each begins at any block, because a cached address may be stale. One reader: either it READs a whole block
 * (any block, its lines in any order), decides by the rules, and later READs the state word again, as the validation of a
 * transaction does; or it READs one slot line and then the record. One owner: the repair of the locks of a dead client,
 * then the sweep of the blocks that were lent to it.
 *
 * Ghosts. `truth`: the pairs that are in the index, changed in the same step as the WRITE that commits. `live_records`:
 * the records that say "present". (A pair is a byte: key 1..3, +4 for the record's second address; 0 is null.)
 *
 * Properties, all assertions:
 *  P1  A whole image that the reader accepts has exactly the keys, within its fences, that the index had when the READ saw
 *      line 0 (a moment between the READ's begin and end).
 *  P2  If the state word is still the same later, the keys within the fences are still those (witness).
 *  P3  A single line together with its record reports no key that is not in the index at that moment.
 *  P4  At the end, with all repairs done: every block that the chain reaches is unlocked and matches its line numbers, and
 *      has what the truth has, each key once, with the right record. Every other block is dead.
 *  P5  No WRITE gives a line a first word that it had before. (CONSEQUENCES switches this off, to see whether P1 to P4
 *      notice by themselves.)
 *
 *  P6  What the owner's CPU reads from a locked leaf is what line 0 says: no key of the index is missing, and a key that
 *      is not in the index has no record that says "present". The word without its lock is a witness of it. If the reader
 *      came there by a right link, the index may have been so at any moment since the link was read.
 *
 * Run: docs/models/README.md. Without switches this is the protocol of index/shared_leaf/. Its size: OPS1, OPS2
 * (changes by each client), DEATHS, NB.
 *   CLIENT_READ_LINES  clients, too, READ line by line (otherwise at once, which P1 justifies for all but replace)
 *   START_SPLIT        begins with block 1 linked as an empty right sibling
 *   LOCKED_READS       the reader may also be the owner's CPU (P6)
 *   NO_REPLACE, NO_SMO, NO_ABSORB, NO_GIVEBACK, NO_READER   leave out changes of that kind, or the reader
 * Variants that were considered (each must fail, except where noted):
 *   REMOVE_NULLS       remove writes the pair as null before line 0 (with REPAIR_CLEARS_BIT, the other mend, it must pass)
 *   RIGHT_UNLOCKED     a split writes the right leaf unlocked
 *   SWEEP_STATE_ONLY   the versions of a reused block go on from its state word, not from the highest of its lines
 *   REPLACE_WORD       replace writes the record word only, version unchanged (with REREAD, where each writer READs the
 *                      lines behind its CAS, it must pass)
 *   REPLACE_COMMITS_LATE  replace writes the whole slot line, and line 0 is taken for its commit point
 *   LEFT_COVERS        repair calls an absorbed leaf dead if "left.high covers its range"
 *   SINGLE_TRUST       a pair found in a single line counts as present, whatever its record says
 * Deliberate mistakes (each must fail):
 *   REPLACE_BUMP       replace writes the record word, then only raises the version in the state word
 *   LINE0_FIRST        insert writes line 0 before the slot line
 *   REPAIR_NO_STAMP    repair gives lines old versions, so that they agree
 *   REPAIR_KEEPS_GARBAGE  repair only unlocks
 *   NO_COMPARE         the reader compares no line versions
 *   GIVEBACK_OLD       whoever gives up after writing a line CASes the old state word back
 *   LOCKED_OLD_LINES   the owner's CPU takes lines that are older than line 0 says (with LOCKED_READS, LOCKED_DIRECT)
 *   LOCKED_DIRECT      the owner's CPU believes a locked leaf to which no right link has led it (with LOCKED_READS)
 *   SPLIT_CLEARS       a split takes the pairs that moved out of their lines, too, after line 0, which unlocks
 *   ABSORB_NO_LOCK     absorb does not lock the empty leaf
 */
#ifndef NB
#define NB 2
#endif
#ifndef OPS1
#define OPS1 2
#endif
#ifndef OPS2
#define OPS2 1
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#define NL 2            /* slot lines of a block */
#define NP 2            /* pairs of a line */
#define NS 4            /* NL * NP */
#define NONE NB         /* no right sibling */
#define MID 3           /* where block 0 is split */

/* State word: version << 3 | dead 4 | owner (0 free, 1, 2). */
#define DEAD 4
#define VER(w) ((w) >> 3)
#define OWNER(w) ((w) & 3)
#define IS_DEAD(w) (((w) & DEAD) != 0)
#define WORD(v, o) (((v) << 3) | (o))
#define KEY(p) ((p) & 3)
#define BIT(n) (1 << (n))
#define KEYS(pairs) (((pairs) | ((pairs) >> 4)) & 14)   /* set of pairs -> set of keys */
#define RANGE(l, h) ((BIT(h) - 1) & ~(BIT(l) - 1))      /* keys from l, below h */

/* Registered memory. */
byte st[NB], bm[NB], lo[NB], hi[NB], rt[NB];
byte lv[NB * NL];        /* line 0: the version of each slot line */
byte ver[NB * NL];       /* slot lines: first word */
byte pr[NB * NS];        /* slot lines: pairs */
/* The owner's ledger. */
bool is_free[NB];
byte lessee[NB];
/* Ghosts and bookkeeping. */
byte truth, live_records;
#ifdef LOCKED_READS
byte absorbed;           /* the truth when a leaf was absorbed */
#define NOTE_ABSORBED absorbed = truth
#else
#define NOTE_ABSORBED skip
#endif
byte deaths = DEATHS;
bool is_dead[3], is_done[3];

#ifdef CONSEQUENCES
#define FRESH(x) skip
#endif
#ifndef CONSEQUENCES
#define FRESH(x) assert(x)
#endif

/* One slot line becomes the pairs of the caller's `ipr` whose bit is in `keep`, with a new version. */
inline write_line(b, i, v, keep) {
  FRESH((v) > ver[(b) * NL + (i)]);
  ver[(b) * NL + (i)] = v;
  pr[(b) * NS + (i) * NP] = (((keep) & BIT((i) * NP)) -> ipr[(i) * NP] : 0);
  pr[(b) * NS + (i) * NP + 1] = (((keep) & BIT((i) * NP + 1)) -> ipr[(i) * NP + 1] : 0)
}

inline linked(b, x, yes) {
  x = 0;
  do
  :: x != NONE && x != (b) -> x = rt[x]
  :: else -> break
  od;
  yes = (x == (b));
  x = 0
}

/* A step of a client: one verb, or its death before it. */
#define STEP(what) if :: d_step { what } :: d_step { deaths > 0 -> deaths-- } goto die fi

#define OP_INSERT 1
#define OP_REMOVE 2
#define OP_REPLACE 3
#define OP_SPLIT 4
#define OP_ABSORB 5

inline read_header() {
  seen = st[b]; ibm = bm[b]; ilo = lo[b]; ihi = hi[b]; irt = rt[b];
  ilv[0] = lv[b * NL]; ilv[1] = lv[b * NL + 1]
}
inline read_line(i) {
  iver[i] = ver[b * NL + i];
  ipr[i * NP] = pr[b * NS + i * NP]; ipr[i * NP + 1] = pr[b * NS + i * NP + 1]
}
inline forget() {
  b = 0; k = 0; op = 0; s = 0; v = 0; w = 0; n = 0; x = 0; todo = 0; seen = 0; seen2 = 0; ibm = 0; ilo = 0; ihi = 0; irt = 0;
  ok = 0; moved = 0; kept = 0; ilv[0] = 0; ilv[1] = 0; iver[0] = 0; iver[1] = 0;
  ipr[0] = 0; ipr[1] = 0; ipr[2] = 0; ipr[3] = 0
}
/* Line 0 as the image has it, with the state word and bitmap given. */
inline write_header(word, bits) {
  FRESH(VER(word) > VER(st[b]));
  assert(OWNER(st[b]) == me);
  st[b] = word; bm[b] = bits; hi[b] = ihi; rt[b] = irt; lv[b * NL] = ilv[0]; lv[b * NL + 1] = ilv[1]
}
inline slot_of_key() {
  s = 0;
  do
  :: s < NS && !((ibm & BIT(s)) && KEY(ipr[s]) == k) -> s++
  :: else -> break
  od
}

proctype Client(byte me; byte ops) {
  byte b, k, op, s, v, w, n, x, todo, seen, seen2, ibm, ilo, ihi, irt, moved, kept;
  byte ilv[NL], iver[NL], ipr[NS];
  bool ok;

next:
  atomic {
    b = 0;
    d_step { forget() }
    if :: ops == 0 -> goto out :: else -> ops-- fi;
    /* An address from the cache: maybe stale. */
    if :: b = 0 :: b = 1
#if NB > 2
    :: b = 2
#endif
    fi;
    if
    :: op = OP_INSERT
    :: op = OP_REMOVE
#ifndef NO_REPLACE
    :: op = OP_REPLACE
#endif
#ifndef NO_SMO
    :: b == 0 -> op = OP_SPLIT
#ifndef NO_ABSORB
    :: b == 0 -> op = OP_ABSORB
#endif
#endif
    fi;
    if
    :: op <= OP_REPLACE -> if :: k = 1 :: k = 2 :: k = 3 fi
    :: else -> skip
    fi;
#ifndef CLIENT_READ_LINES
    d_step { read_header(); read_line(0); read_line(1) }
#endif
  }
#ifdef CLIENT_READ_LINES
  todo = 7;
  do
  :: d_step { todo & 1 -> read_header(); todo = todo & 6 }
  :: d_step { todo & 2 -> read_line(0); todo = todo & 5 }
  :: d_step { todo & 4 -> read_line(1); todo = todo & 3 }
  :: todo == 0 -> break
  od;
#endif
  /* Is the image valid, and is there something to do? */
  atomic {
    d_step {
      ok = (OWNER(seen) == 0 && !IS_DEAD(seen) && ilv[0] == iver[0] && ilv[1] == iver[1]);
      v = VER(seen);
      if
      :: !ok -> skip
      :: ok && op <= OP_REPLACE ->
         ok = (ilo <= k && k < ihi);
         slot_of_key();
         if
         :: op == OP_INSERT ->
            if
            :: s < NS -> ok = 0
            :: else ->
               s = 0;
               do :: s < NS && (ibm & BIT(s)) -> s++ :: else -> break od;
               if :: s == NS -> ok = 0 :: else -> skip fi
            fi
         :: else ->
            if
            :: s == NS -> ok = 0
            :: else -> if :: !(live_records & BIT(ipr[s])) -> ok = 0 :: else -> skip fi    /* another's placeholder */
            fi
         fi
      :: ok && op == OP_SPLIT ->
         n = 1;
         do :: n < NB && !is_free[n] -> n++ :: else -> break od;
         ok = (ihi > MID && n < NB)
      :: ok && op == OP_ABSORB ->
         n = irt;
         if
         :: n == NONE -> ok = 0
         :: else -> seen2 = st[n]; ok = (bm[n] == 0 && OWNER(seen2) == 0 && !IS_DEAD(seen2))
         fi
      fi
    }
    if :: !ok -> goto next :: else -> skip fi
  }

  /* The lock: the CAS succeeds only if the state word is the one seen. */
  STEP( ok = (st[b] == seen); if :: ok -> st[b] = seen | me :: else -> skip fi );
  if :: !ok -> goto next :: else -> skip fi;
#ifdef REREAD
  STEP( read_line(0); read_line(1) );      /* posted behind the CAS */
#endif
#ifndef NO_GIVEBACK
  if
  :: op == OP_INSERT ->                    /* given back unused */
     if :: STEP( assert(st[b] == (seen | me)); st[b] = seen ); goto next :: skip fi
  :: else -> skip
  fi;
#endif

  if
  :: op == OP_INSERT ->
     d_step { ipr[s] = k; ilv[s / NP] = v + 1 }
#ifdef LINE0_FIRST
     STEP( write_header(WORD(v + 1, 0), ibm | BIT(s)); assert(!(KEYS(truth) & BIT(k))); truth = truth | BIT(k) );
     STEP( write_line(b, s / NP, v + 1, ibm | BIT(s)) );
#else
     STEP( write_line(b, s / NP, v + 1, ibm | BIT(s)) );
#ifndef NO_GIVEBACK
     if
     :: skip
     :: /* gives up: it publishes the version of the line that it wrote */
#ifdef GIVEBACK_OLD
        STEP( st[b] = seen );
#else
        STEP( write_header(WORD(v + 1, 0), ibm) );
#endif
        goto next
     fi;
#endif
     STEP( write_header(WORD(v + 1, 0), ibm | BIT(s)); assert(!(KEYS(truth) & BIT(k))); truth = truth | BIT(k) );
#endif
     STEP( live_records = live_records | BIT(k) )                /* install; the record was a placeholder until now */

  :: op == OP_REMOVE ->
     STEP( live_records = live_records & ~BIT(ipr[s]) );         /* the record says absent first */
#ifdef REMOVE_NULLS
     ilv[s / NP] = v + 1;
     STEP( write_line(b, s / NP, v + 1, ibm & ~BIT(s)) );
#endif
     STEP( write_header(WORD(v + 1, 0), ibm & ~BIT(s)); truth = truth & ~BIT(ipr[s]) )

  :: op == OP_REPLACE ->
     d_step { x = ipr[s]; ipr[s] = x ^ 4 }
     STEP( live_records = live_records | BIT(x ^ 4) );
#if defined(REPLACE_WORD) || defined(REREAD)
     STEP( pr[b * NS + s] = x ^ 4; truth = (truth & ~BIT(x)) | BIT(x ^ 4); live_records = live_records & ~BIT(x) );
     STEP( st[b] = seen )
#elif defined(REPLACE_BUMP)
     STEP( pr[b * NS + s] = x ^ 4; truth = (truth & ~BIT(x)) | BIT(x ^ 4); live_records = live_records & ~BIT(x) );
     STEP( st[b] = WORD(v + 1, 0) )
#else
     ilv[s / NP] = v + 1;
#ifdef REPLACE_COMMITS_LATE
     STEP( write_line(b, s / NP, v + 1, ibm) );
     STEP( write_header(WORD(v + 1, 0), ibm); truth = (truth & ~BIT(x)) | BIT(x ^ 4); live_records = live_records & ~BIT(x) )
#else
     /* The old pair is gone with the slot line: this WRITE, not that of line 0, commits. Repair cannot undo it. */
     STEP( write_line(b, s / NP, v + 1, ibm); truth = (truth & ~BIT(x)) | BIT(x ^ 4); live_records = live_records & ~BIT(x) );
     STEP( write_header(WORD(v + 1, 0), ibm) )
#endif
#endif

  :: op == OP_SPLIT ->
     d_step {                              /* a block of its own lease */
       ok = is_free[n];
       if :: ok -> is_free[n] = 0; lessee[n] = me; w = VER(st[n]) :: else -> skip fi
     }
     if
     :: !ok -> STEP( st[b] = seen ); goto next
     :: else -> skip
     fi;
     d_step {
       s = 0;
       do
       :: s < NS ->
          if :: (ibm & BIT(s)) && KEY(ipr[s]) >= MID -> moved = moved | BIT(s) :: else -> skip fi;
          s++
       :: else -> break
       od;
       s = 0; todo = 7; k = 0; x = 0
     }
#ifndef NO_SPLIT_INSERT
     if
     :: moved == 0 && !(KEYS(truth) & BIT(MID)) -> d_step { k = MID; ipr[0] = MID; moved = 1 }
     :: skip
     fi;
#endif
     do                                    /* the right leaf: one WRITE, its lines in any order */
     :: todo & 1 ->
        STEP(
          FRESH(w + 1 > VER(st[n]));
#ifdef RIGHT_UNLOCKED
          st[n] = WORD(w + 1, 0);
#else
          st[n] = WORD(w + 1, me);
#endif
          bm[n] = moved; lo[n] = MID; hi[n] = ihi; rt[n] = irt; lv[n * NL] = w + 1; lv[n * NL + 1] = w + 1; todo = todo & 6 )
     :: todo & 2 -> STEP( write_line(n, 0, w + 1, moved); todo = todo & 5 )
     :: todo & 4 -> STEP( write_line(n, 1, w + 1, moved); todo = todo & 3 )
     :: todo == 0 -> break
     od;
     skip;     d_step { ihi = MID; irt = n; if :: k != 0 -> kept = ibm :: else -> kept = ibm & ~moved fi }
     /* The pairs that moved stay in their lines: line 0 says that their slots are free. */
#ifdef SPLIT_CLEARS
     d_step {
       if :: moved & 3 -> ilv[0] = v + 1 :: else -> skip fi;
       if :: moved & 12 -> ilv[1] = v + 1 :: else -> skip fi
     }
#endif
     if
     :: STEP( write_header(WORD(v + 1, 0), kept); truth = truth | (BIT(k) & 14) )
#ifndef NO_SPLIT_INSERT
     :: k == 0 && kept != 15 && !(KEYS(truth) & BIT(1)) ->  /* then a key for this leaf, under the same lock */
        STEP( write_header(WORD(v + 1, me), kept) );
        d_step {
          s = 0;
          do :: s < NS && (kept & BIT(s)) -> s++ :: else -> break od;
          ipr[s] = 1; ilv[s / NP] = v + 2; ibm = kept | BIT(s); x = 1
        }
        STEP( write_line(b, s / NP, v + 2, ibm) );
        STEP( write_header(WORD(v + 2, 0), ibm); truth = truth | BIT(1) )
#endif
     fi;
#ifdef SPLIT_CLEARS
     if :: moved & 3 -> STEP( write_line(b, 0, v + 1, ibm & ~moved) ) :: else -> skip fi;
     if :: moved & 12 -> STEP( write_line(b, 1, v + 1, ibm & ~moved) ) :: else -> skip fi;
#endif
#ifndef RIGHT_UNLOCKED
     STEP( st[n] = WORD(w + 2, 0) );       /* the next version, so that it can be repeated */
#endif
     if                                    /* install */
     :: k != 0 -> STEP( live_records = live_records | BIT(k) )
     :: x == 1 -> STEP( live_records = live_records | BIT(1) )
     :: else -> skip
     fi;
     lessee[n] = 0

  :: op == OP_ABSORB ->
#ifndef ABSORB_NO_LOCK
     STEP( ok = (st[n] == seen2); if :: ok -> st[n] = seen2 | me :: else -> skip fi );
     if
     :: !ok -> STEP( st[b] = seen ); goto next
     :: else -> skip
     fi;
#endif
     /* The fences of `n` are as READ: it is locked. */
     STEP( ihi = hi[n]; irt = rt[n]; write_header(WORD(v + 1, 0), ibm); NOTE_ABSORBED );
     STEP( st[n] = WORD(VER(seen2) + 1, DEAD) );
     is_free[n] = 1
  fi;
  goto next;

die: skip;
  d_step { forget(); is_dead[me] = 1; ops = 0 };
out: skip;
  d_step { forget(); is_done[me] = 1 }
}

/* ---- the owner ------------------------------------------------------------------------------------------------------- */

proctype Owner() {
  byte c, b, i, s, x, top, keep, bits;
  byte ipr[NS];
  bool yes;

  do
  :: is_dead[1] || is_dead[2] ->
     c = (is_dead[1] -> 1 : 2);
     b = 0;
     do
     :: b < NB && OWNER(st[b]) == c ->
        d_step {
#ifdef LEFT_COVERS
          /* as proposed: it was absorbed if a leaf to the left of it in the chain has its range */
          yes = 1; x = 0;
          do
          :: x != NONE -> if :: x != b && lo[x] < lo[b] && hi[x] >= hi[b] -> yes = 0 :: else -> skip fi; x = rt[x]
          :: else -> break
          od;
          x = 0;
          if :: yes && !is_free[b] && lessee[b] == c -> linked(b, x, yes) :: else -> skip fi;  /* an unlinked right leaf */
#else
          linked(b, x, yes);
#endif
          top = VER(st[b]); i = 0;
          do
          :: i < NL -> top = (ver[b * NL + i] > top -> ver[b * NL + i] : top); i++
          :: else -> break
          od;
          top++; i = 0
        }
        if
        :: !yes ->                         /* absorbed, or a right leaf that nobody links */
           d_step { st[b] = WORD(top, DEAD) }
        :: else ->
           d_step {
             s = 0; bits = bm[b];
             do
             :: s < NS -> ipr[s] = pr[b * NS + s]; s++
             :: else -> break
             od;
             s = 0
           }
           do
           :: i < NL ->
              d_step {
                /* A line that line 0 does not know keeps its pairs, which line 0 does not count, and its version. */
                yes = (ver[b * NL + i] != lv[b * NL + i]);
                if
                :: yes ->
#if defined(REPAIR_NO_STAMP)
                   ver[b * NL + i] = lv[b * NL + i];
#else
                   skip;
#endif
                :: else -> skip
                fi;
                i++
              }
           :: else -> break
           od;
           skip;           d_step {
#ifdef REPAIR_CLEARS_BIT
             s = 0;
             do
             :: s < NS -> if :: (bm[b] & BIT(s)) && ipr[s] == 0 -> bits = bits & ~BIT(s) :: else -> skip fi; s++
             :: else -> break
             od;
             s = 0;
             /* the removal is carried out: the truth loses every key of this leaf that has no slot any more */
             x = 0;
             do
             :: s < NS -> if :: bits & BIT(s) -> x = x | BIT(KEY(ipr[s])) :: else -> skip fi; s++
             :: else -> break
             od;
             s = 0;
             x = (x | ~RANGE(lo[b], hi[b])) & 15;
             truth = truth & (x | (x << 4));
             x = 0;
#endif
#if defined(REPAIR_NO_STAMP) || defined(REPAIR_KEEPS_GARBAGE)
             st[b] = WORD(VER(st[b]), 0);
#else
             st[b] = WORD(top, 0); bm[b] = bits; lv[b * NL] = ver[b * NL]; lv[b * NL + 1] = ver[b * NL + 1]
#endif
           }
        fi;
        d_step { ipr[0] = 0; ipr[1] = 0; ipr[2] = 0; ipr[3] = 0; keep = 0; bits = 0; top = 0; i = 0; yes = 0; b++ }
     :: b < NB && OWNER(st[b]) != c -> b++
     :: b == NB -> break
     od;
     b = 0;
     /* The sweep: blocks leased by the dead client that the chain does not reach are free. */
     do
     :: b < NB && lessee[b] == c ->
        d_step {
          linked(b, x, yes);
          lessee[b] = 0;
          if
          :: !yes ->
             top = VER(st[b]);
#ifdef SWEEP_STATE_ONLY
             if :: IS_DEAD(st[b]) -> skip :: else -> top++ fi;
#else
             top = (ver[b * NL] > top -> ver[b * NL] : top);
             top = (ver[b * NL + 1] > top -> ver[b * NL + 1] : top);
             if :: IS_DEAD(st[b]) -> skip :: else -> top++ fi;
#endif
             st[b] = WORD(top, DEAD); is_free[b] = 1; top = 0
          :: else -> skip
          fi;
          yes = 0; b++
        }
     :: b < NB && lessee[b] != c -> b++
     :: b == NB -> break
     od;
     skip;     d_step { is_dead[c] = 0; b = 0; c = 0 }
  :: is_done[1] && is_done[2] && !is_dead[1] && !is_dead[2] -> break
  od;

  /* P4. */
  skip;  d_step {
    b = 0; keep = 0; bits = 0;            /* keep: pairs found; bits: blocks reached */
    do
    :: b != NONE ->
       bits = bits | BIT(b);
       assert(OWNER(st[b]) == 0 && !IS_DEAD(st[b]));
       assert(lv[b * NL] == ver[b * NL] && lv[b * NL + 1] == ver[b * NL + 1]);
       assert(rt[b] == NONE || (lo[rt[b]] == hi[b]));
       s = 0;
       do
       :: s < NS ->
          if
          :: bm[b] & BIT(s) ->
             x = pr[b * NS + s];
             assert(x != 0 && KEY(x) >= lo[b] && KEY(x) < hi[b]);
             assert(!(KEYS(keep) & BIT(KEY(x))));         /* no key twice */
             keep = keep | BIT(x)
          :: else -> skip
          fi;
          s++
       :: else -> break
       od;
       b = rt[b]
    :: else -> break
    od;
    assert(keep == truth);                                /* none lost, none that was undone, each with its record */
    b = 0;
    do
    :: b < NB ->
       assert((bits & BIT(b)) || IS_DEAD(st[b])); b++
    :: else -> break
    od;
    b = 0; s = 0; x = 0; keep = 0; bits = 0
  }
}

/* ---- the reader -------------------------------------------------------------------------------------------------------- */

proctype Reader() {
  byte b, todo, word, bits, low, high, then, answer, s;
  byte rlv[NL], rver[NL], rpr[NS];
  bool ok, by_link;

  if :: b = 0 :: b = 1
#if NB > 2
  :: b = 2
#endif
  fi;
  if
  :: /* the whole block */
     todo = 7;
     do
     :: d_step { todo & 1 ->
          word = st[b]; bits = bm[b]; low = lo[b]; high = hi[b]; rlv[0] = lv[b * NL]; rlv[1] = lv[b * NL + 1];
          then = KEYS(truth) & RANGE(low, high); todo = todo & 6 }
     :: d_step { todo & 2 -> rver[0] = ver[b * NL]; rpr[0] = pr[b * NS]; rpr[1] = pr[b * NS + 1]; todo = todo & 5 }
     :: d_step { todo & 4 -> rver[1] = ver[b * NL + 1]; rpr[2] = pr[b * NS + 2]; rpr[3] = pr[b * NS + 3]; todo = todo & 3 }
     :: todo == 0 -> break
     od;
     skip;     d_step {
       ok = (OWNER(word) == 0 && !IS_DEAD(word)
#ifndef NO_COMPARE
             && rlv[0] == rver[0] && rlv[1] == rver[1]
#endif
       );
       if
       :: ok ->
          s = 0;
          do
          :: s < NS -> if :: (bits & BIT(s)) && rpr[s] != 0 -> answer = answer | BIT(KEY(rpr[s])) :: else -> skip fi; s++
          :: else -> break
          od;
          s = 0;
          assert(answer == then)                          /* P1 */
       :: else -> skip
       fi;
       rlv[0] = 0; rlv[1] = 0; rver[0] = 0; rver[1] = 0; rpr[0] = 0; rpr[1] = 0; rpr[2] = 0; rpr[3] = 0; bits = 0; then = 0
     }
     if
     :: ok ->
        d_step {                                          /* the transaction's validation */
          if :: st[b] == word -> assert((KEYS(truth) & RANGE(low, high)) == answer) :: else -> skip fi;     /* P2 */
          word = 0; answer = 0; low = 0; high = 0; b = 0; ok = 0
        }
     :: else -> skip
     fi
#ifdef LOCKED_READS
  :: /* the owner's CPU: the state word, the lines, the state word again. Block 0, which is never absorbed, may be locked
      * meanwhile, and another block if the right link of block 0 led there. */
     by_link = (b == 0);
     if
     :: d_step { b != 0 && rt[0] == b -> by_link = 1 }
     :: skip
     fi;
     d_step {
       word = st[b]; bits = bm[b]; low = lo[b]; high = hi[b]; rlv[0] = lv[b * NL]; rlv[1] = lv[b * NL + 1];
       todo = 6
     }
     do
     :: d_step { todo & 2 -> rver[0] = ver[b * NL]; rpr[0] = pr[b * NS]; rpr[1] = pr[b * NS + 1]; todo = todo & 5 }
     :: d_step { todo & 4 -> rver[1] = ver[b * NL + 1]; rpr[2] = pr[b * NS + 2]; rpr[3] = pr[b * NS + 3]; todo = todo & 3 }
     :: todo == 0 -> break
     od;
     skip;     d_step {
       /* A line may be newer than line 0 says, by the change that holds the lock. It is not older. */
       ok = (st[b] == word && !IS_DEAD(word)
#ifndef LOCKED_DIRECT
             && (by_link || OWNER(word) == 0)
#endif
#ifndef LOCKED_OLD_LINES
             && rver[0] >= rlv[0] && rver[1] >= rlv[1]
#endif
       );
       if
       :: ok ->
          s = 0;
          do
          :: s < NS -> if :: (bits & BIT(s)) && rpr[s] != 0 -> answer = answer | BIT(KEY(rpr[s])) :: else -> skip fi; s++
          :: else -> break
          od;
          s = 0;
          /* P6: no key is missing that the index has; a key that it does not have has no record that is present. If the
           * leaf was absorbed after its link was read: that the index had then. */
          then = KEYS(by_link && b != 0 && rt[0] != b -> absorbed : truth) & RANGE(low, high);
          assert((then & ~answer) == 0);
          assert((answer & ~then & KEYS(live_records)) == 0);
          word = VER(word) << 3                           /* the witness: the word without the lock */
       :: else -> skip
       fi;
       rlv[0] = 0; rlv[1] = 0; rver[0] = 0; rver[1] = 0; rpr[0] = 0; rpr[1] = 0; rpr[2] = 0; rpr[3] = 0; bits = 0; then = 0;
       by_link = 0
     }
     if
     :: ok ->
        d_step {
          if
          :: st[b] == word ->
             then = KEYS(truth) & RANGE(low, high);
             assert((then & ~answer) == 0);
             assert((answer & ~then & KEYS(live_records)) == 0);
             then = 0
          :: else -> skip
          fi;
          word = 0; answer = 0; low = 0; high = 0; b = 0; ok = 0
        }
     :: else -> skip
     fi
#endif
  :: /* one slot line, then the record */
     if :: s = 0 :: s = 1 :: s = 2 :: s = 3 fi;
     d_step { word = pr[b * NS + s]; s = 0; b = 0 }
     if
     :: word != 0 ->
        d_step {
#ifndef SINGLE_TRUST
          if :: live_records & BIT(word) -> assert(KEYS(truth) & BIT(KEY(word))) :: else -> skip fi;        /* P3 */
#else
          assert(KEYS(truth) & BIT(KEY(word)));
#endif
          word = 0
        }
     :: else -> skip
     fi
  fi
}

init {
  d_step {
    st[0] = WORD(1, 0); lo[0] = 1; hi[0] = 4; rt[0] = NONE; bm[0] = 5;
    lv[0] = 1; lv[1] = 1; ver[0] = 1; ver[1] = 1;
    pr[0] = 1; pr[2] = 3;                                 /* key 1 in line 0, key 3 in line 1 */
    truth = BIT(1) | BIT(3); live_records = BIT(1) | BIT(3);
    /* Block 1 was a leaf of the range from MID once: that is what a stale address leads to. */
    st[1] = WORD(1, DEAD); lo[1] = MID; hi[1] = 4; rt[1] = NONE; is_free[1] = 1
#ifdef START_SPLIT
    ; hi[0] = MID; rt[0] = 1; bm[0] = 1; pr[2] = 0; truth = BIT(1); live_records = BIT(1);
    st[1] = WORD(1, 0); lv[2] = 1; lv[3] = 1; ver[2] = 1; ver[3] = 1; is_free[1] = 0
#endif
#if NB > 2
    ; st[2] = WORD(1, DEAD); lo[2] = MID; hi[2] = 4; rt[2] = NONE; is_free[2] = 1
#endif
  }
  atomic { run Client(1, OPS1); run Client(2, OPS2); run Owner()
#ifndef NO_READER
    ; run Reader()
#endif
  }
}
