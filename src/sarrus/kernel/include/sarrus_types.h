/* What machines and integrators tell each other: plain records, no functions. */
#ifndef SARRUS_TYPES_H
#define SARRUS_TYPES_H

#define SR_EXPORT __attribute__((visibility("default")))

/* static arrays of C99 must not have zero length */
#define SR_DIM(n) ((n) > 0 ? (n) : 1)

typedef struct {
  real tolerance;   /* directions with a singular value below this are dropped */
  real fast_pivot;  /* smallest pivot, relative to the reference, at which the fast path is trusted */
  long mode;        /* 0: fast path if it can be trusted, 1: always rank-revealing */
  long max_rank;    /* at most so many directions are kept, the strongest; negative: no limit */
} sr_options;

/* what does not change from state to state; work: the caller's, SR_WORK numbers for each thread */
typedef struct {
  const real *p, *active, *rowdata; /* active: one flag for each kept row; rowdata: SR_K squared norms, inverses, scales */
  sr_options options;
  real *work;
} sr_setup;

/* what the solve decided; never hidden from the caller */
typedef struct {
  real rank;      /* independent active rows */
  real path;      /* 0 fast, 1 rank-revealing */
  real accepted;  /* smallest accepted singular value, estimated from above (fast path: root of the smallest pivot) */
  real rejected;  /* norm of what was rejected, an upper bound of the largest rejected singular value */
  real inertia;   /* smallest pivot of a velocity; not positive: M is not positive definite, or a term not finite; minus
                     infinity: no contact forces go with the friction (sarrus_solve.h) */
} sr_report;

#endif
