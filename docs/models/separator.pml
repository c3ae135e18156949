/* separator.pml: the separator of a node in the level above (index/blink/blink.h), as a model for SPIN 6.5: "a separator
 * that is there leads to its child".
 *
 * What is modelled. A parent P and a node N below it, whose low fence is somewhere within P. N has a left sibling, which
 * is not modelled: a merge locks it before N, and it says nothing about separators. Of P there is the state word, whether
 * the separator of N is in it, and whether P was split right there: then the separator is the first of its node, and
 * stays. Of N there is the state word and what its block is now: this node, dead, or another node. One step of a process
 * reads or writes one of them whole; a change commits and unlocks by one step (leaf.pml has the steps within). A client
 * may die between any two of its steps; what it had locked is repaired later.
 *
 * Processes. Adders, who have seen N without its separator before: one of them has made N by a split, others came to it by
 * a right link. Mergers, who merge N with its left sibling. A splitter of P. A user of free blocks, who makes a dead N
 * another node, or a node with the same low fence again.
 *
 * Properties, both assertions:
 *  S1  The separator, if P is not locked and has it, leads to N, which lives.
 *  S2  If P was split at the separator, it is there, and leads to N, which lives: otherwise the keys from there on are
 *      lost. (CONSEQUENCES leaves only this.)
 *
 * Run: docs/models/README.md. Its size: ADDERS, MERGERS, TRIES (of each), DEATHS, USES (of the dead block).
 * Deliberate mistakes (each must fail):
 *   NO_LOOK            who adds a separator does not look at N
 *   ADD_ANYWAY         the separator is added to P whatever has happened to P since the READ
 *   LOOK_FIRST         the look at N comes before the READ of P
 *   LOOK_THROUGH       a locked N is taken for one that lives
 *   SEPARATOR_FIRST    a merge takes the separator out before it locks N
 *   OLD_PARENT         a merge takes it out of P whatever has happened to P since the READ
 *   FIRST_TOO          a merge takes it out also if it is the first of its node
 */
#ifndef ADDERS
#define ADDERS 2
#endif
#ifndef MERGERS
#define MERGERS 2
#endif
#ifndef TRIES
#define TRIES 2
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef USES
#define USES 2
#endif

mtype = { own, dead, other };

byte p_word;            /* version of P */
bool p_locked;
bool p_has;             /* the separator */
bool p_is_first;        /* and it is the first of its node */
byte n_word = 1;        /* version of N's block */
bool n_locked;
mtype n_is = own;
byte deaths = DEATHS;

#ifdef CONSEQUENCES
#define S1 true
#else
#define S1 (!p_has || n_is == own)
#endif
#define S2 (!p_is_first || (p_has && n_is == own))
#define CHECK assert(p_locked || (S1 && S2))

/* The client may die here: it takes no step after that. Its locks are repaired later, in one step for each. */
#define MAY_DIE if :: true -> skip :: deaths > 0 -> deaths--; goto died fi

proctype Adder()
{
  byte word;
  byte tries = TRIES;
  bool holds_p;
again:
  if
  :: tries == 0 -> goto over
  :: else -> tries--
  fi;
  MAY_DIE;
#ifdef LOOK_FIRST
  atomic { if :: n_is == own && !n_locked -> skip :: else -> goto over fi }
  MAY_DIE;
#endif
  /* READs P. */
  atomic {
    !p_locked;
    if
    :: p_has -> goto over
    :: else -> word = p_word
    fi
  }
  MAY_DIE;
#if !defined(NO_LOOK) && !defined(LOOK_FIRST)
  /* READs N once. */
  atomic {
    if
#ifdef LOOK_THROUGH
    :: n_is == own -> skip
#else
    :: n_is == own && !n_locked -> skip
#endif
    :: else -> goto over
    fi
  }
  MAY_DIE;
#endif
  /* CAS that locks P. */
  atomic {
    if
#ifdef ADD_ANYWAY
    :: !p_locked -> p_locked = true; holds_p = true
    :: p_locked -> goto again
#else
    :: !p_locked && p_word == word -> p_locked = true; holds_p = true
    :: else -> goto again
#endif
    fi
  }
  MAY_DIE;
  /* WRITE that commits. */
  d_step { p_has = true; p_word++; p_locked = false; CHECK; holds_p = false }
  goto over;
died:
  skip;
  d_step { if :: holds_p -> p_word++; p_locked = false; CHECK :: else fi }
over:
  skip
}

proctype Merger()
{
  byte word;
  byte n_seen;
  byte tries = TRIES;
  bool holds_p;
  bool holds_n;
again:
  if
  :: tries == 0 -> goto over
  :: else -> tries--
  fi;
  MAY_DIE;
  /* READs N, then P. N is sparse whenever somebody looks. */
  atomic {
    !n_locked;
    if
    :: n_is != own -> goto over
    :: else -> n_seen = n_word
    fi
  }
  MAY_DIE;
  atomic {
    !p_locked;
    if
    :: !p_has -> goto over
#ifndef FIRST_TOO
    :: p_has && p_is_first -> goto over
#endif
    :: else -> word = p_word
    fi
  }
#ifdef SEPARATOR_FIRST
  MAY_DIE;
  atomic {
    if
    :: !p_locked && p_word == word -> p_locked = true; holds_p = true
    :: else -> goto again
    fi
  }
  MAY_DIE;
  d_step { p_has = false; p_word++; p_locked = false; CHECK; holds_p = false }
#endif
  MAY_DIE;
  atomic {
    if
    :: !n_locked && n_word == n_seen -> n_locked = true; holds_n = true
    :: else -> goto again
    fi
  }
#ifndef SEPARATOR_FIRST
  MAY_DIE;
  atomic {
    if
#ifdef OLD_PARENT
    :: !p_locked -> p_locked = true; holds_p = true
    :: p_locked -> goto back
#else
    :: !p_locked && p_word == word -> p_locked = true; holds_p = true
    :: else -> goto back
#endif
    fi
  }
  MAY_DIE;
  d_step { p_has = false; p_word++; p_locked = false; CHECK; holds_p = false }
#endif
  MAY_DIE;
  /* N's keys are in its left sibling now. */
  d_step { n_is = dead; n_word++; n_locked = false; CHECK; holds_n = false }
  goto over;
back:
  MAY_DIE;
  atomic { n_locked = false; holds_n = false }
  goto again;
died:
  skip;
  d_step { if :: holds_p -> p_word++; p_locked = false; CHECK :: else fi }
  d_step { if :: holds_n -> n_word++; n_locked = false :: else fi }
over:
  skip
}

/* Splits P, at the separator if that is there. */
proctype Splitter()
{
  byte word;
  byte tries = TRIES;
again:
  if
  :: tries == 0 -> goto over
  :: else -> tries--
  fi;
  atomic { !p_locked; word = p_word }
  atomic {
    if
    :: !p_locked && p_word == word -> p_locked = true
    :: else -> goto again
    fi
  }
  d_step { p_is_first = p_has; p_word++; p_locked = false; CHECK }
over:
  skip
}

proctype User()
{
  byte uses = USES;
  do
  :: atomic {
       uses > 0 && n_is == dead && !n_locked ->
       if
       :: n_is = other
       :: n_is = own
       fi;
       n_word++;
       uses--;
       CHECK
     }
  :: atomic { uses > 0 && n_is == other && !n_locked -> n_is = dead; n_word++; uses--; CHECK }
  :: break
  od
}

init
{
  byte i;
  atomic {
    for (i : 1 .. ADDERS) { run Adder() }
    for (i : 1 .. MERGERS) { run Merger() }
    run Splitter();
    run User()
  }
}
