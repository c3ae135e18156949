/* dex_lease.pml: how compute nodes use cached leaves of a DEX index without a verb (index/shared_leaf/claim/claim.h), as a
 * model for SPIN 6.5.
 *
 * What is modelled. One owner with two blocks: block 0 is a leaf, block 1 is its right sibling or a free block.
 * leaf.pml has the lines of a leaf, and what a death in the middle of a change leaves; so a leaf is read by one step
 * here, and a change takes two: the lock, and the WRITE of line 0 that commits and unlocks. Two compute nodes: C,
 * whose cache is the subject, and X. A node has a frame for each block, a board (words in its registered memory that
 * the owner raises by FAA, and its own CPU only loads), and a connection to the owner. A verb takes effect only while
 * the connection that it names has not ended. A cached inner node may lead a search to any block; the fences of a
 * leaf decide.
 *
 * A state word is (mode, version). Modes: plain; claimed by a node; kept by a node (KEEP); locked by a thread; gone,
 * that is dead. A claim is a CAS to (claimed by n, version + 1).
 *
 * Processes. Readers: transactions that read one key or both (NR=2) from frames, and commit by three looks and no
 * verb: at the frame, at the board, at the clock; or by a READ of the state word. Writers of C, two with C2WRITES: one
 * weakens the frame that it finds to a hint, takes the leaf's lock by CAS, changes the leaf, and publishes it in the
 * frame, if that has its mark still. The owner: changes, splits, merges for any caller, and ends claims (ENDS) so that X
 * may claim. A caller of C: pushes a change down to the owner. Fate: C or X dies before any of its steps (DEATHS), or C
 * lives and its connection ends (CUTS). Then the owner releases locks at once, and claims when the term has passed. From
 * then on no clock check of that connection succeeds, whatever the clocks of the nodes show; before, any may succeed. C
 * then comes back over a new connection.
 *
 * SKEW: two transactions, on two nodes or one (ONE_NODE), each of which inserts the key that the other found absent.
 * KEEP: leaves that C keeps locked, in a bench without transactions: two threads of C that keep, read, change, hand over
 * and push down; X, which reads and changes what is not kept. With WRITE_BACK, changes stay in the frame until then.
 * PROGRESS: the owner hands block 0 over to X; <> handed_over.
 *
 * Properties.
 *  D1  What a transaction has read, the index had at one moment between the end of its reads and its commit.
 *  D2  Of the two transactions of SKEW at most one commits.
 *  D3  Each change starts from what the leaf has. At the end the leaves have exactly what was acknowledged.
 *  D4  At the end no leaf is locked, and none is claimed or kept by a dead node.
 *  D5  A hand-over ends (PROGRESS, by hand, with weak fairness). No process waits without end (invalid end states).
 *
 * Run: README.md of this folder. D5, by hand:
 *   spin -a SWITCHES dex_lease.pml
 *   gcc -O2 -w -DNOREDUCE -DCOLLAPSE -DVECTORSZ=2048 -o pan pan.c && ./pan -m400000 -a -f -n
 * must pass: -DPROGRESS -DOWNS=0 -DREADS=2 -DEVICTIONS=1; -DPROGRESS -DOWNS=0 -DCUTS=1; the same with -DDEATHS=1. Must
 * fail: -DPROGRESS -DOWNS=0 -DGREEDY, in which a node claims again at once what was ended.
 *
 * Deliberate mistakes (each must fail):
 *   NO_TERM               the owner ends the claims of a node that it has lost at once; also with KEEP
 *   NO_CLOCK              no look at the clock; also with KEEP
 *   CLOCK_AT_READ         the look at the clock comes before the read, not after: the lease ends in between
 *   OLD_CONNECTION        a frame is judged by the lease of the present connection, not by its own
 *   NO_END                the owner changes a leaf without ending its claim
 *   END_LATE              it ends the claim after the change
 *   NO_BOARD              no look at the board
 *   BOARD_AFTER           a claim notes the board's value after its CAS
 *   CLAIM_SAME_VERSION    a claim keeps the version, so its value returns
 *   CLAIM_BEFORE_FRAME    no frame is announced: the claim is there before its frame
 *   NO_BEGIN              a writer does not look for a frame after its READ
 *   NO_LATCH              a writer does not weaken the frame
 *   UNMARKED              a frame that was weakened by another writer, too, becomes good again
 *   GRANT_GIVEN_BACK      so does one when the lock was given back, and the word is that of before
 *   WRITE_WITHOUT_LOCK    a holder changes a claimed leaf without the lock's CAS
 *   NO_FENCES             the child of a stale inner node is used without a look at its fences
 *   WRONG_NAME            a witness has the address in the parent, not that of the frame that was found there
 *   OFFLOAD_BLIND         a change is pushed down while the caller's frame of the leaf is still in use
 *   KEEP_CLAIMS           the repair forgets claims
 *   VALIDATE_EARLY        a transaction validates before it has locked what it changes
 *   OFFLOAD_DIRTY         a change is pushed down past a dirty frame
 *   UNLOCK_FIRST          a leaf is handed over before it is written back
 * KEEP with WRITE_BACK and DEATHS fails without a mistake: write-back loses what a dead node has acknowledged.
 *
 * What the searches have shown, in addition.
 *  - The order of the three looks does not matter (CLOCK_FIRST): each says that something has held since the reads. But
 *    each must come after the reads (CLOCK_AT_READ), and after the transaction's own locks (VALIDATE_EARLY).
 *  - A hand-over waits for no transaction: there is no grace period in which C's transactions run out. What must wait is
 *    the owner, when it has lost C: NO_TERM.
 *  - The announcement is needed for more than performance: CLAIM_BEFORE_FRAME, NO_BEGIN.
 *  - Locks of changes may be released at once, before the term: their frame is no more than a hint.
 *  - Hints need none of this. A frame without a claim is believed only after a READ of the state word (HINTS).
 *
 * What is left out. Several leaves of one word of the board (a claim may end without need), failed verbs whose
 * outcome is unknown (the frame is dropped), the log's epochs, the arithmetic of the term (index/claim_boards.h), records,
 * inner nodes (separator.pml), versions that wrap. An FAA that has completed is taken to be visible to C's CPU.
 */
#ifndef READS
#define READS 1
#endif
#ifndef NR
#define NR 1
#endif
#ifndef CWRITES
#define CWRITES 0
#endif
#ifndef C2WRITES
#define C2WRITES 0
#endif
#ifndef XWRITES
#define XWRITES 0
#endif
#ifndef OWNS
#define OWNS 1
#endif
#ifndef CALLS
#define CALLS 0
#endif
#ifndef EVICTIONS
#define EVICTIONS 0
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef CUTS
#define CUTS 0
#endif

#define C 0
#define X 1

/* The mode of a leaf's state word; the word is (mode, version). */
#define PLAIN 0
#define CLAIM(n) (1 + (n))
#define KEPT(n) (3 + (n))
#define GONE 5
#define LOCK(t) (8 + (t))       /* t: 0 the owner, 1 and 3 writers of C, 2 a writer of X */
#define WEAK 7                  /* of a frame: a copy of a claimed leaf, but no more than a hint */
/* f_con of a weak copy: the mark of a writer, 1 to 3. */
#define IS_LOCKED(m) ((m) >= 8)
#define IS_CLAIM(m) ((m) == CLAIM(C) || (m) == CLAIM(X))

/* The memory node. */
byte mode[2], ver[2], keys[2], lo[2], hi[2];
bool up[2];                     /* the connection to the compute node */
/* Compute nodes. Frame of node n for block b: n * 2 + b. */
#define NONE 0
#define USED 1
#define BUSY 2                  /* the latch is held, or the I/O flag is set */
#define F (n * 2 + b)
byte f_st[4], f_mode[4], f_ver[4], f_keys[4], f_lo[4], f_hi[4], f_board[4], f_con[4];
byte board[4];                  /* registered memory of the node; one word for each block */
byte con[2];                    /* number of the node's connection */
bool over[4];                   /* node * 2 + connection: the term has passed since it ended */
bool dead[2];
byte evictions = EVICTIONS;
/* Ghosts and bookkeeping. */
byte truth;                     /* set of keys of the index; key 1 is bit 1, key 2 is bit 2 */
bool r_on[3], r_held[3];        /* readers that have read, and whether it was the truth at some moment since */
byte r_mask[3], r_got[3];
byte running;
bool committed[2];

inline reader_sees(r) {
  if :: r_on[r] && (truth & r_mask[r]) == r_got[r] -> r_held[r] = 1 :: else -> skip fi
}
inline set_truth(t) { truth = t; reader_sees(0); reader_sees(1); reader_sees(2) }

/* A step of a thread of node n, or its death before it. */
#define STEP(what) if :: d_step { !dead[n] -> what } :: d_step { dead[n] -> skip } goto die fi
/* A verb takes effect if its connection has not ended. */
#define LIVE (up[n] && con[n] == c)

inline read_leaf() { m = mode[b]; v = ver[b]; ks = keys[b]; l = lo[b]; h = hi[b] }
inline read_frame() { m = f_mode[F]; v = f_ver[F]; ks = f_keys[F]; l = f_lo[F]; h = f_hi[F] }
inline drop_frame() {
  f_st[F] = NONE; f_mode[F] = 0; f_ver[F] = 0; f_keys[F] = 0; f_lo[F] = 0; f_hi[F] = 0; f_board[F] = 0; f_con[F] = 0
}
/* A claim looks at the board before its CAS, and raises the version. */
#ifdef BOARD_AFTER
#define LOOK_AT_BOARD_FIRST skip
#define LOOK_AT_BOARD_LAST STEP( bd = board[F] )
#else
#define LOOK_AT_BOARD_FIRST STEP( bd = board[F] )
#define LOOK_AT_BOARD_LAST skip
#endif
#ifdef CLAIM_SAME_VERSION
#define NEXT 0
#else
#define NEXT 1
#endif

/* ---- transactions that read -------------------------------------------------------------------------------------- */

inline forget_reader() {
  b = 0; k = 0; i = 0; m = 0; v = 0; ks = 0; l = 0; h = 0; c = 0; bd = 0; ok = 0;
  rb[0] = 0; rm[0] = 0; rv[0] = 0; rb[NR - 1] = 0; rm[NR - 1] = 0; rv[NR - 1] = 0;
  r_on[r] = 0; r_held[r] = 0; r_mask[r] = 0; r_got[r] = 0
}

proctype Reader(byte n; byte r; byte tries)
{
  byte b, k, i, m, v, ks, l, h, c, bd;
  byte rb[NR], rm[NR], rv[NR];
  bool ok;

next:
  atomic {
    b = 0;
    d_step { forget_reader() };
#ifdef GREEDY
    if :: dead[n] -> goto out :: else -> skip fi;
#else
    if :: tries == 0 || dead[n] -> goto out :: else -> tries-- fi;
#endif
#if NR == 2
    k = 1
#else
    if :: k = 1 :: k = 2 fi
#endif
  }
item:
  if :: b = 0 :: b = 1 fi;      /* wherever cached inner nodes lead */
look:
  if
  :: d_step { !dead[n] && f_st[F] == USED -> read_frame() }
  :: d_step { !dead[n] && f_st[F] == USED && evictions > 0 -> evictions--; drop_frame() } goto look
#if defined(RECLAIMS) || defined(GREEDY)
  :: d_step { !dead[n] && f_st[F] == USED && f_mode[F] == CLAIM(n) && board[F] != f_board[F] ->
       f_st[F] = BUSY; read_frame(); c = con[n] } goto claim
#endif
  :: d_step { !dead[n] && f_st[F] == USED && f_mode[F] == WEAK -> drop_frame() } goto look
#ifdef CLAIM_BEFORE_FRAME
  :: d_step { !dead[n] && f_st[F] == NONE -> skip } goto fetch
#else
  :: d_step { !dead[n] && f_st[F] == NONE -> f_st[F] = BUSY } goto fetch
#endif
  :: d_step { !dead[n] && f_st[F] == BUSY -> skip } goto next
  :: d_step { dead[n] -> skip } goto die
  fi;
#ifdef CLOCK_AT_READ
  STEP( ok = !over[n * 2 + f_con[F]] );
  if :: ok -> skip :: else -> goto next fi;
#endif
#ifndef NO_FENCES
  if :: l <= k && k < h -> skip :: else -> goto next fi;
#endif
#ifdef WRONG_NAME
  if :: b = 1 - b :: skip fi;
#endif
  d_step {
    rb[i] = b; rm[i] = m; rv[i] = v; r_mask[r] = r_mask[r] | k; r_got[r] = r_got[r] | (ks & k);
    i++; m = 0; v = 0; ks = 0; l = 0; h = 0
  }
#if NR == 2
  if :: i == 1 -> k = 2; goto item :: else -> skip fi;
#endif
  d_step { i = 0; k = 0; r_on[r] = 1; reader_sees(r) }
  /* The validation (rule 3). */
  do
  :: i < NR ->
     b = rb[i];
#ifdef CLOCK_FIRST
     STEP( ok = (rm[i] == CLAIM(n) && !over[n * 2 + f_con[F]]) );
     STEP( if :: ok -> ok = (board[F] == f_board[F]) :: else -> skip fi );
     STEP( if :: ok -> ok = (f_st[F] == USED && f_mode[F] == rm[i] && f_ver[F] == rv[i]) :: else -> skip fi );
#else
     STEP( ok = (rm[i] == CLAIM(n) && f_st[F] == USED && f_mode[F] == rm[i] && f_ver[F] == rv[i]);
           bd = f_board[F]; c = f_con[F] );
#ifndef NO_BOARD
     STEP( if :: ok -> ok = (board[F] == bd) :: else -> skip fi );
#endif
#if defined(OLD_CONNECTION)
     STEP( if :: ok -> ok = !over[n * 2 + con[n]] :: else -> skip fi );
#elif !defined(CLOCK_AT_READ) && !defined(NO_CLOCK)
     STEP( if :: ok -> ok = !over[n * 2 + c] :: else -> skip fi );
#endif
#endif
     if
     :: ok -> skip
     :: else ->                 /* a READ of the state word */
        STEP( ok = (up[n] && mode[b] == rm[i] && ver[b] == rv[i]) );
        if :: ok -> skip :: else -> goto next fi
     fi;
     d_step { i++; ok = 0; bd = 0; c = 0 }
  :: else -> break
  od;
  skip; d_step { assert(r_held[r]) }                                                     /* D1 */
  goto next;

fetch:
  STEP( ok = up[n]; c = con[n]; if :: ok -> read_leaf(); ok = !IS_LOCKED(m) && m != GONE :: else -> skip fi );
  if :: ok -> skip :: else -> STEP( drop_frame() ); goto next fi;
#ifdef HINTS
  if
  :: STEP( f_mode[F] = m; f_ver[F] = v; f_keys[F] = ks; f_lo[F] = l; f_hi[F] = h; f_st[F] = USED ); goto look
  :: skip
  fi;
#endif
  if :: m == PLAIN || m == CLAIM(n) -> skip :: else -> STEP( drop_frame() ); goto next fi;
claim:
  LOOK_AT_BOARD_FIRST;
  STEP( ok = (LIVE && mode[b] == m && ver[b] == v);
        if :: ok -> m = CLAIM(n); v = v + NEXT; mode[b] = m; ver[b] = v :: else -> skip fi );
  if :: ok -> skip :: else -> STEP( drop_frame() ); goto next fi;
  LOOK_AT_BOARD_LAST;
  STEP( f_mode[F] = m; f_ver[F] = v; f_keys[F] = ks; f_lo[F] = l; f_hi[F] = h; f_board[F] = bd; f_con[F] = c;
        f_st[F] = USED; bd = 0; c = 0; ok = 0 );
  goto look;

die: skip;
out: skip;
  d_step { forget_reader(); tries = 0; running-- }
}

/* ---- changes by a thread of a compute node, by verbs ------------------------------------------------------------- */

#define OP_TOGGLE 1             /* inserts a key, or removes it */
#define OP_SPLIT 2
#define OP_MERGE 3
#define OP_END 4                /* the owner ends a claim for somebody who wants one */

proctype Writer(byte n; byte t; byte ops)
{
  byte b, k, op, m, v, ks, l, h, c, bd, was;
  bool ok;

next:
  atomic {
    b = 0;
    d_step { k = 0; op = 0; m = 0; v = 0; ks = 0; l = 0; h = 0; c = 0; bd = 0; was = 0; ok = 0 };
    if :: ops == 0 || dead[n] -> goto out :: else -> ops-- fi;
    if :: b = 0 :: b = 1 fi;
    if
    :: op = OP_TOGGLE; if :: k = 1 :: k = 2 fi
#ifdef SPLITS
    :: b == 0 -> op = OP_SPLIT
#endif
    fi
  }
  /* The leaf as a copy has it, or as it is READ. */
  if
  :: d_step { !dead[n] && f_st[F] == USED && f_mode[F] == CLAIM(n) -> read_frame() }
  :: STEP( ok = up[n]; if :: ok -> read_leaf(); ok = (m == PLAIN || m == CLAIM(n)) :: else -> skip fi );
     if :: ok -> skip :: else -> goto next fi
  fi;
  if
  :: (op == OP_TOGGLE && l <= k && k < h) || (op == OP_SPLIT && h == 3) -> skip
  :: else -> goto next
  fi;
  c = con[n];
#ifndef NO_BEGIN
  /* Whatever copy there is now is no more than a hint from here on, with this writer's mark; none may be
   * coming. The board is looked at after that. */
  STEP( ok = (f_st[F] != BUSY);
        if :: f_st[F] == USED && (f_mode[F] == CLAIM(n) || f_mode[F] == WEAK) ->
#ifndef NO_LATCH
              f_mode[F] = WEAK;
#endif
              f_con[F] = t
           :: else -> skip fi );
  STEP( bd = board[F] );
  if :: ok -> skip :: else -> goto next fi;
#endif
  /* The lock: from then on the leaf is changed as every shared leaf. */
#ifdef WRITE_WITHOUT_LOCK
#define HELD m
  STEP( ok = (m == CLAIM(n) && f_st[F] == USED && board[F] == bd) );
#else
#define HELD LOCK(t)
  STEP( ok = (LIVE && mode[b] == m && ver[b] == v); if :: ok -> mode[b] = LOCK(t) :: else -> skip fi );
#endif
  if :: ok -> skip :: else -> STEP( if :: f_st[F] == USED -> drop_frame() :: else -> skip fi ); goto next fi;
  was = v;
  if
  :: op == OP_TOGGLE ->
     STEP( ok = LIVE;
       if
       :: ok ->
          assert(mode[b] == HELD && ver[b] == v && keys[b] == ks && lo[b] == l && hi[b] == h);       /* D3 */
          ks = ks ^ k; keys[b] = ks; v++; ver[b] = v; mode[b] = (m == CLAIM(n) -> CLAIM(n) : PLAIN); set_truth(truth ^ k)
       :: else -> skip
       fi )
#ifdef GIVES_BACK
  :: STEP( ok = LIVE; if :: ok -> mode[b] = m :: else -> skip fi )
#endif
  :: op == OP_SPLIT ->
     STEP( ok = (LIVE && mode[1] == GONE);
           if :: ok -> mode[1] = LOCK(t); ver[1]++; keys[1] = ks & 2; lo[1] = 2; hi[1] = 3 :: else -> skip fi );
     if
     :: ok ->
        STEP( ok = LIVE;
          if
          :: ok ->
             assert(mode[b] == LOCK(t) && ver[b] == v && keys[b] == ks && hi[b] == h);
             ks = ks & 1; keys[b] = ks; h = 2; hi[b] = 2; v++; ver[b] = v; mode[b] = (m == CLAIM(n) -> CLAIM(n) : PLAIN)
          :: else -> skip
          fi );
        if
        :: ok -> STEP( if :: LIVE -> assert(mode[1] == LOCK(t)); mode[1] = PLAIN :: else -> skip fi )
        :: else -> skip
        fi
     :: else -> STEP( if :: LIVE -> mode[b] = m :: else -> skip fi )
     fi
  fi;
  /* A copy of what the leaf was becomes a copy of what it is, with the board's value of before the lock. If it has
   * another writer's mark by now, or the lock was given back and the word is an old one, it stays a hint. */
  if
  :: ok -> STEP( if
                 :: f_st[F] == USED && m == CLAIM(n) && f_ver[F] == was && (f_mode[F] == WEAK || f_mode[F] == m) ->
                    f_ver[F] = v; f_keys[F] = ks; f_hi[F] = h;
                    if
#ifndef UNMARKED
                    :: f_con[F] != t -> skip
#endif
#ifndef GRANT_GIVEN_BACK
                    :: v == was -> skip
#endif
                    :: else -> f_mode[F] = m; f_board[F] = bd; f_con[F] = c
                    fi
                 :: else -> skip
                 fi )
  :: else -> STEP( if :: f_st[F] == USED -> drop_frame() :: else -> skip fi )
  fi;
  goto next;

die: skip;
out: skip;
  d_step { b = 0; k = 0; op = 0; m = 0; v = 0; ks = 0; l = 0; h = 0; c = 0; bd = 0; was = 0; ok = 0; ops = 0; running-- }
}

/* ---- changes by the owner's CPU, for any caller ------------------------------------------------------------------ */

/* Rule 5: ends the claim that the word has. ok: no frame relies on it any more. */
#ifdef NO_END
#define END_CLAIM(m) skip
#else
#define END_CLAIM(m) \
  if :: IS_CLAIM(m) -> n = m - 1; \
       d_step { ok = (up[n] && !dead[n]); if :: ok -> board[F]++ :: else -> skip fi } \
     :: else -> ok = 1 fi
#endif

proctype Owner(byte ops)
{
  byte b, k, op, m, v, ks, l, h, n, v2;
  bool ok;

next:
  atomic {
    b = 0;
    d_step { k = 0; op = 0; m = 0; v = 0; ks = 0; l = 0; h = 0; n = 0; v2 = 0; ok = 0 };
    if :: ops == 0 -> goto out :: else -> ops-- fi;
    if :: b = 0 :: b = 1 fi;
    if
    :: op = OP_TOGGLE; if :: k = 1 :: k = 2 fi
#ifdef SPLITS
    :: b == 0 -> op = OP_SPLIT
    :: b == 1 -> op = OP_MERGE
#endif
#ifdef ENDS
    :: op = OP_END
#endif
    fi
  }
  d_step { read_leaf(); ok = 1 }
  if
  :: IS_LOCKED(m) || m == GONE -> goto next
  :: else ->
     if
     :: (op == OP_TOGGLE && l <= k && k < h) || (op == OP_SPLIT && h == 3) || op == OP_MERGE ||
            (op == OP_END && IS_CLAIM(m))
     :: else -> goto next
     fi
  fi;
#ifndef END_LATE
  END_CLAIM(m);
#endif
  if :: ok -> skip :: else -> goto next fi;      /* the holder is lost: the caller asks again after the repair */
  d_step { ok = (mode[b] == m && ver[b] == v); if :: ok -> mode[b] = (op == OP_END -> PLAIN : LOCK(0))
         :: else -> skip fi }
  if :: !ok || op == OP_END -> goto next :: else -> skip fi;
  if
  :: op == OP_TOGGLE ->
     d_step {
       assert(mode[b] == LOCK(0) && ver[b] == v && keys[b] == ks);
       keys[b] = ks ^ k; ver[b] = v + 1; mode[b] = PLAIN; set_truth(truth ^ k)
     }
  :: op == OP_SPLIT ->
     d_step {
       ok = (mode[1] == GONE);
       if :: ok -> mode[1] = LOCK(0); ver[1]++; keys[1] = ks & 2; lo[1] = 2; hi[1] = 3 :: else -> mode[b] = PLAIN;
              ver[b] = v + 1 fi
     }
     if
     :: ok ->
        d_step { assert(keys[b] == ks); keys[b] = ks & 1; hi[b] = 2; ver[b] = v + 1; mode[b] = PLAIN }
        d_step { mode[1] = PLAIN }
     :: else -> skip
     fi
  :: else ->                    /* block 1 is locked; block 0 absorbs it */
     d_step { b = 0; m = mode[0]; v2 = ver[0]; ok = !IS_LOCKED(m) }
     if :: ok -> END_CLAIM(m) :: else -> skip fi;
     d_step {
       if
       :: ok && mode[0] == m && ver[0] == v2 -> mode[0] = LOCK(0)
       :: else -> ok = 0; mode[1] = PLAIN; ver[1]++
       fi
     }
     if
     :: ok ->
        d_step { keys[0] = keys[0] | ks; hi[0] = 3; ver[0]++; mode[0] = PLAIN }
        d_step { mode[1] = GONE; ver[1]++ }
     :: else -> skip
     fi
  fi;
#ifdef END_LATE
  END_CLAIM(m);
#endif
  goto next;

out: skip;
  d_step { b = 0; k = 0; op = 0; m = 0; v = 0; ks = 0; l = 0; h = 0; n = 0; v2 = 0; ok = 0; running-- }
}

/* A thread of a node pushes a change down (rule 6): it gives its own claim up first, and tells the owner the word.
 * The owner's steps go on if the caller dies. */
proctype Caller(byte n; byte ops)
{
  byte b, k, m, v, ks, l, h;
  bool ok;

next:
  atomic {
    b = 0;
    d_step { k = 0; m = 0; v = 0; ks = 0; l = 0; h = 0; ok = 0 };
    if :: ops == 0 || dead[n] -> goto out :: else -> ops-- fi;
    if :: b = 0 :: b = 1 fi;
    if :: k = 1 :: k = 2 fi
  }
  if
  :: d_step { !dead[n] && f_st[F] == USED && f_mode[F] == CLAIM(n) -> m = f_mode[F]; v = f_ver[F];
#ifndef OFFLOAD_BLIND
       drop_frame()
#endif
     }
  :: d_step { !dead[n] && f_st[F] == NONE -> m = GONE }
  :: d_step { !dead[n] && (f_st[F] == BUSY || (f_st[F] == USED && f_mode[F] != CLAIM(n))) -> skip } goto next
  :: d_step { dead[n] -> skip } goto die
  fi;
  STEP( ok = up[n] );
  if :: ok -> skip :: else -> goto next fi;
  /* At the owner. */
  d_step {
    if
    :: m != GONE && mode[b] == m && ver[b] == v -> ok = 1              /* the claim that the caller gave up */
    :: m == GONE && mode[b] == PLAIN -> m = PLAIN; v = ver[b]; ok = 1
    :: else -> ok = 0
    fi;
    if
    :: ok && lo[b] <= k && k < hi[b] -> mode[b] = LOCK(0); ks = keys[b]
    :: else -> ok = 0
    fi
  }
  if
  :: ok -> d_step { assert(keys[b] == ks); keys[b] = ks ^ k; ver[b]++; mode[b] = PLAIN; set_truth(truth ^ k) }
  :: else -> skip
  fi;
  goto next;

die: skip;
out: skip;
  d_step { b = 0; k = 0; m = 0; v = 0; ks = 0; l = 0; h = 0; ok = 0; ops = 0; running-- }
}

/* ---- a death, or a live node that is taken for dead; and what the owner does then -------------------------------- */

inline end_claims() {
  b = 0;
  do
  :: b < 2 -> d_step { if :: mode[b] == CLAIM(n) || mode[b] == KEPT(n) -> mode[b] = PLAIN; ver[b]++
         :: else -> skip fi; b++ }
  :: else -> break
  od;
  b = 0
}

proctype Fate()
{
  byte n, b;
  bool happens;

  if
#if DEATHS > 0
  :: happens = 1; if :: n = C :: n = X fi;
     d_step { dead[n] = 1; b = 0; drop_frame(); b = 1; drop_frame(); b = 0 }
#endif
#if CUTS > 0
  :: happens = 1; n = C
#endif
  :: skip
  fi;
  if
  :: happens ->
     up[n] = 0;
     do                         /* locks of changes: at once */
     :: b < 2 ->
        d_step {
          if
          :: (n == C && (mode[b] == LOCK(1) || mode[b] == LOCK(3))) || (n == X && mode[b] == LOCK(2)) ->
             if :: b == 1 && hi[0] == 3 -> mode[1] = GONE :: else -> mode[b] = PLAIN fi;
             ver[b]++
          :: else -> skip
          fi;
          b++
        }
     :: else -> break
     od;
     skip;
#ifdef NO_TERM
     end_claims();
     if :: !dead[n] -> d_step { con[n] = 1; up[n] = 1 } :: else -> skip fi;
     over[n * 2] = 1
#else
     over[n * 2] = 1;           /* rule 7: the owner waits for the term */
#ifndef KEEP_CLAIMS
     end_claims();
#endif
     if :: !dead[n] -> d_step { con[n] = 1; up[n] = 1 } :: else -> skip fi
#endif
  :: else -> skip
  fi;
  d_step { n = 0; b = 0; happens = 0; running-- }
}

proctype Monitor()
{
  byte b;
  running == 0;
  d_step {
    do
    :: b < 2 ->
       assert(!IS_LOCKED(mode[b]));                                                       /* D4 */
       assert((mode[b] != CLAIM(C) && mode[b] != KEPT(C)) || !dead[C]);
       assert((mode[b] != CLAIM(X) && mode[b] != KEPT(X)) || !dead[X]);
       b++
    :: else -> break
    od;
#if !defined(SKEW) && !defined(WRITE_BACK)
    assert((keys[0] | (mode[1] == GONE -> 0 : keys[1])) == truth);                       /* D3 */
    assert(hi[0] == (mode[1] == GONE -> 3 : 2));
#endif
    assert(!committed[0] || !committed[1])                                                /* D2 */
  }
}

/* ---- SKEW: two transactions, each of which inserts the key that the other has found absent ----------------------- */

#ifdef SKEW
proctype Mixed(byte n; byte t; byte me; byte k)      /* reads key k, which is in block k - 1; inserts the other */
{
  byte b, m, v, ks, l, h, c, bd, rm, rv, n2;
  bool ok, latched, first;

  b = k - 1;
look:
  if
  :: d_step { f_st[F] == USED -> read_frame() }
  :: d_step { f_st[F] == NONE -> f_st[F] = BUSY }
     STEP( ok = 1; c = con[n]; read_leaf(); ok = (m == PLAIN || m == CLAIM(n)) );
     if :: ok -> skip :: else -> STEP( drop_frame() ); goto out fi;
     LOOK_AT_BOARD_FIRST;
     STEP( ok = (mode[b] == m && ver[b] == v); if :: ok -> m = CLAIM(n); v++; mode[b] = m; ver[b] = v
            :: else -> skip fi );
     if :: ok -> skip :: else -> STEP( drop_frame() ); goto out fi;
     STEP( f_mode[F] = m; f_ver[F] = v; f_keys[F] = ks; f_lo[F] = l; f_hi[F] = h; f_board[F] = bd; f_con[F] = c;
            f_st[F] = USED );
     goto look
  fi;
  if :: ks & k -> goto out :: else -> skip fi;       /* found absent */
  d_step { rm = m; rv = v; m = 0; v = 0; ks = 0; l = 0; h = 0; bd = 0; c = 0; first = 1 }
#ifdef VALIDATE_EARLY
  goto validate;
change:
#endif
  skip;
  d_step { b = 2 - k; first = 0 }
  if
  :: d_step { f_st[F] == USED -> read_frame(); latched = 1; f_st[F] = BUSY }
  :: d_step { f_st[F] == NONE -> f_st[F] = BUSY; read_leaf(); latched = 0 }
  fi;
  if
  :: IS_LOCKED(m) -> STEP( drop_frame() ); m = 0; goto out
  :: else -> skip
  fi;
  if
  :: IS_CLAIM(m) && m != CLAIM(n) ->                 /* the owner makes the change for it */
     n2 = m - 1;
#ifndef NO_END
     d_step { board[n2 * 2 + b]++ }
#endif
     skip
  :: else -> skip
  fi;
  d_step { ok = (mode[b] == m && ver[b] == v); if :: ok -> mode[b] = LOCK(t) :: else -> skip fi }
  if :: ok -> skip :: else -> d_step { drop_frame(); m = 0; v = 0; ks = 0; l = 0; h = 0 } goto out fi;
  d_step { keys[b] = ks | (3 - k); v++; ver[b] = v; mode[b] = (m == CLAIM(n) -> CLAIM(n) : PLAIN) }
  if
  :: latched -> d_step { f_ver[F] = v; f_keys[F] = ks | (3 - k); f_st[F] = USED }
  :: else -> d_step { drop_frame() }
  fi;
#ifdef VALIDATE_EARLY
  goto commit;
#endif
validate:
  skip;
  d_step { b = k - 1; m = 0; v = 0; ks = 0; l = 0; h = 0 }
  STEP( ok = (f_st[F] == USED && f_mode[F] == rm && f_ver[F] == rv); bd = f_board[F] );
#ifndef NO_BOARD
  STEP( if :: ok -> ok = (board[F] == bd) :: else -> skip fi );
#endif
  if :: ok -> skip :: else -> STEP( ok = (mode[b] == rm && ver[b] == rv) ) fi;
  if :: ok -> skip :: else -> goto out fi;
#ifdef VALIDATE_EARLY
  goto change;
commit:
#endif
  committed[me] = 1;
die: skip;
out: skip;
  d_step { b = 0; m = 0; v = 0; ks = 0; l = 0; h = 0; c = 0; bd = 0; rm = 0; rv = 0; n2 = 0; ok = 0; latched = 0;
         first = 0; running-- }
}
#endif

/* ---- KEEP: leaves that one node keeps locked, in a bench without transactions ------------------------------------ */

#ifdef KEEP
#ifndef USES
#define USES 2
#endif
#ifndef OTHERS
#define OTHERS 1
#endif
byte dirty;                     /* bit b + 1: C's frame has what its leaf has not (write-back) */

proctype Keeper(byte n; byte t; byte r; byte ops)
{
  byte b, k, m, v, ks, l, h, c;
  bool ok, got;

next:
  atomic {
    b = 0;
    d_step { k = 0; m = 0; v = 0; ks = 0; l = 0; h = 0; c = 0; ok = 0; got = 0; r_on[r] = 0; r_held[r] = 0;
           r_mask[r] = 0; r_got[r] = 0 };
    if :: ops == 0 || dead[n] -> goto out :: else -> ops-- fi;
    if :: k = 1 :: k = 2 fi
  }
  if
  /* Keeps the leaf from now on. */
  :: d_step { !dead[n] && f_st[F] == NONE -> f_st[F] = BUSY }
     STEP( ok = up[n]; c = con[n]; if :: ok -> read_leaf(); ok = (m == PLAIN) :: else -> skip fi );
     if :: ok -> skip :: else -> STEP( drop_frame() ); goto next fi;
     STEP( ok = (LIVE && mode[b] == m && ver[b] == v); if :: ok -> m = KEPT(n); v++; mode[b] = m; ver[b] = v
            :: else -> skip fi );
     if :: ok -> skip :: else -> STEP( drop_frame() ); goto next fi;
     STEP( f_mode[F] = m; f_ver[F] = v; f_keys[F] = ks; f_lo[F] = l; f_hi[F] = h; f_con[F] = c; f_st[F] = USED )
  /* Reads a key. */
  :: d_step { !dead[n] && f_st[F] == USED -> read_frame(); c = f_con[F]; r_mask[r] = k; r_got[r] = ks & k;
         r_on[r] = 1; reader_sees(r) }
     STEP( ok = (f_st[F] == USED && f_ver[F] == v) );
#ifndef NO_CLOCK
     STEP( if :: ok -> ok = !over[n * 2 + c] :: else -> skip fi );
#endif
     if :: ok -> d_step { assert(r_held[r]) } :: else -> skip fi
  /* Changes a key. */
  :: d_step { !dead[n] && f_st[F] == USED -> f_st[F] = BUSY; read_frame(); c = f_con[F] }
#ifdef WRITE_BACK
     STEP( v++; f_ver[F] = v; f_keys[F] = ks ^ k; dirty = dirty | (b + 1); set_truth(truth ^ k); f_st[F] = USED )
#else
     STEP( ok = LIVE;
           if :: ok -> assert(mode[b] == KEPT(n) && ver[b] == v && keys[b] == ks); ks = ks ^ k; keys[b] = ks; v++;
                  ver[b] = v; set_truth(truth ^ k)
           :: else -> skip fi );
     if
     :: ok -> STEP( f_ver[F] = v; f_keys[F] = ks; f_st[F] = USED )
     :: else -> STEP( drop_frame() )
     fi
#endif
  /* Evicts the frame, or hands the leaf over. */
  :: d_step { !dead[n] && f_st[F] == USED -> f_st[F] = BUSY; read_frame(); c = f_con[F] }
#ifdef UNLOCK_FIRST
     STEP( if :: LIVE -> mode[b] = PLAIN; ver[b] = v + 1 :: else -> skip fi );
     STEP( if :: LIVE -> keys[b] = ks :: else -> skip fi );
#else
     STEP( if :: LIVE -> assert(mode[b] == KEPT(n)); keys[b] = ks; mode[b] = PLAIN; ver[b] = v + 1
            :: else -> skip fi );
#endif
     STEP( dirty = dirty & ~(b + 1); drop_frame() )
  /* Pushes a change down. */
#ifdef OFFLOAD_DIRTY
  :: d_step { !dead[n] && f_st[F] == USED -> skip }
     d_step { m = mode[b]; v = ver[b]; ok = (m == KEPT(n)); if :: ok -> ks = keys[b] ^ k; keys[b] = ks;
            set_truth(truth ^ k) :: else -> skip fi }
#else
  :: d_step { !dead[n] && f_st[F] == NONE -> f_st[F] = BUSY }
     STEP( ok = up[n] );
     d_step { if :: ok && mode[b] == PLAIN -> keys[b] = keys[b] ^ k; ver[b]++; set_truth(truth ^ k)
            :: else -> skip fi }
     STEP( drop_frame() )
#endif
  :: d_step { !dead[n] && f_st[F] == BUSY -> skip }
  :: d_step { dead[n] -> skip } goto die
  fi;
  goto next;

die: skip;
out: skip;
  d_step { b = 0; k = 0; m = 0; v = 0; ks = 0; l = 0; h = 0; c = 0; ok = 0; got = 0; ops = 0; r_on[r] = 0;
         r_held[r] = 0; r_mask[r] = 0; r_got[r] = 0; running-- }
}

/* Another node: it reads and changes what is not kept. */
proctype Other(byte n; byte t; byte ops)
{
  byte k, v, ks;
  bool ok;
next:
  atomic { k = 0; d_step { v = 0; ks = 0; ok = 0 }; if :: ops == 0 || dead[n] -> goto out :: else -> ops-- fi;
         if :: k = 1 :: k = 2 fi }
  if
  :: STEP( if :: mode[0] == PLAIN -> assert((keys[0] & k) == (truth & k)) :: else -> skip fi )
  :: STEP( ok = (mode[0] == PLAIN); v = ver[0]; ks = keys[0] );
     STEP( if :: ok && mode[0] == PLAIN && ver[0] == v -> mode[0] = LOCK(t) :: else -> ok = 0 fi );
     if :: ok -> STEP( assert(keys[0] == ks); keys[0] = ks ^ k; ver[0]++; mode[0] = PLAIN;
            set_truth(truth ^ k) ) :: else -> skip fi
  fi;
  goto next;
die: skip;
out: skip;
  d_step { k = 0; v = 0; ks = 0; ok = 0; ops = 0; running-- }
}
#endif

/* ---- PROGRESS: the owner hands a leaf over, however often it takes ----------------------------------------------- */

#ifdef PROGRESS
bool handed_over;
ltl hands_over { <> handed_over }
proctype HandOver(byte n; byte b)
{
  byte m, v;
  bool ok;
  do
  :: d_step { m = mode[b]; v = ver[b] }
     if
     :: m == CLAIM(n) ->
        d_step { ok = (up[n] && !dead[n]); if :: ok -> board[F]++ :: else -> skip fi }
        if
        :: ok -> d_step { if :: mode[b] == m && ver[b] == v -> mode[b] = CLAIM(X); ver[b]++ :: else -> skip fi }
        :: else -> skip
        fi
     :: m == PLAIN -> d_step { if :: mode[b] == m && ver[b] == v -> mode[b] = CLAIM(X); ver[b]++ :: else -> skip fi }
     :: m == CLAIM(X) -> handed_over = 1; break
     :: else -> skip
     fi;
     d_step { m = 0; v = 0; ok = 0 }
  od;
  running--
}
#endif

init {
  d_step {
    up[C] = 1; up[X] = 1;
    ver[0] = 1; lo[0] = 1; hi[0] = 3; keys[0] = 2;
    mode[1] = GONE; ver[1] = 1; lo[1] = 2; hi[1] = 3;
    truth = 2;
#if defined(START_SPLIT) || defined(SKEW)
    hi[0] = 2; keys[0] = 0; mode[1] = PLAIN; keys[1] = 2;
#endif
#ifdef SKEW
    keys[1] = 0; truth = 0;
#endif
  }
  atomic {
#if defined(SKEW)
    running = 2;
#if defined(ONE_NODE)
    run Mixed(C, 1, 0, 1); run Mixed(C, 3, 1, 2);
#else
    run Mixed(C, 1, 0, 1); run Mixed(X, 2, 1, 2);
#endif
#elif defined(KEEP)
    running = 4;
    run Keeper(C, 1, 0, USES); run Keeper(C, 3, 1, USES); run Other(X, 2, OTHERS); run Fate();
#else
    running = 2; run Reader(C, 0, READS); run Fate();
#ifdef READER2
    running++; run Reader(C, 1, READS);
#endif
#ifdef XREADER
    running++; run Reader(X, 2, READS);
#endif
#if CWRITES > 0
    running++; run Writer(C, 1, CWRITES);
#endif
#if C2WRITES > 0
    running++; run Writer(C, 3, C2WRITES);
#endif
#if XWRITES > 0
    running++; run Writer(X, 2, XWRITES);
#endif
#if OWNS > 0
    running++; run Owner(OWNS);
#endif
#if CALLS > 0
    running++; run Caller(C, CALLS);
#endif
#ifdef PROGRESS
    running++; run HandOver(C, 0);
#endif
#endif
    run Monitor()
  }
}
