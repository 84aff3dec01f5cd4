/* Motion of one machine: its state, how it moves on the manifold of configurations, and how drift is removed.

   A step works in local coordinates y = (delta, v) around the configuration q at its beginning: q(t) = q [+] delta(t),
   numbers add, quaternions turn by the exponential map, so delta' = N(delta) v with N = I except for turns, where
     delta' = w + delta x w / 2 + c delta x (delta x w),   c = 1/|delta|^2 - cot(|delta|/2) / (2 |delta|).
   Every integrator below is so an ordinary one on a vector space, and a quaternion never loses its length. An explicit one
   may carry reduced quasi-velocities in place of v (sarrus_quasi.h): y = (delta, v_r), v = Z v_r + v_n. Steps of
   differential-algebraic forms (sarrus_dae.h) work in (q, v, multipliers) and hand over the (delta, v) of their end.

   Needs SR_NQ, SR_NV, SR_NU, SR_M, SR_K, SR_PLAIN, SR_TURNS and the tables sr_plain_q/v[], sr_turn_q/v[]. */
#ifndef SARRUS_MOTION_H
#define SARRUS_MOTION_H

#include "sarrus_types.h"
#include "sarrus_quasi.h"

#ifndef SR_QUASI
#define SR_QUASI 0 /* 1: steps carry reduced quasi-velocities */
#endif

enum { SR_NY2 = 2 * SR_NV };

/* why a run came back */
enum {
  SR_GO_ON, SR_FINISHED, SR_FIRED, SR_TOO_SMALL, SR_NOT_FINITE, SR_LOST, SR_TOO_MANY, SR_CROSSED, SR_CALL_FAILED,
  SR_NO_CONVERGENCE
};
enum { SR_DOP853, SR_DOPRI5, SR_RADAU, SR_RK4, SR_EULER, SR_VARIATIONAL };
enum { SR_CONTINUE, SR_STOP, SR_RELEASE };
enum { SR_PROJECT, SR_BAUMGARTE, SR_FREE };
enum { SR_UNWATCHED = 2, SR_ARMED = 2 }; /* a guard that does not matter now; one that is zero and must not fall */
enum { SR_HERMITE, SR_EIGHT, SR_BRIDGED };

struct sr_trial; /* sarrus_explicit.h */

/* A loop that is open by this part of the machine's size is lost; by less where the rows carry less: a machine that is
   off by c follows another branch where its support falls to about the root of c. */
#define SR_OPEN 1e-2

enum { SR_NODES = 14, SR_TERMS_A = 10, SR_TERMS_D = 11 };

SR_FN void sr_retract(const real *q, const real *delta, real *out) {
  for (int i = 0; i < SR_PLAIN; i++) out[sr_plain_q[i]] = q[sr_plain_q[i]] + delta[sr_plain_v[i]];
  for (int k = 0; k < SR_TURNS; k++) {
    const real *a = q + sr_turn_q[k], *r = delta + sr_turn_v[k];
    real *o = out + sr_turn_q[k];
    const real angle = sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
    const real f = angle > 1e-8 ? sin(angle / 2) / angle : 0.5 - angle * angle / 48;
    const real b0 = cos(angle / 2), b1 = f * r[0], b2 = f * r[1], b3 = f * r[2];
    const real w = a[0] * b0 - a[1] * b1 - a[2] * b2 - a[3] * b3, x = a[0] * b1 + a[1] * b0 + a[2] * b3 - a[3] * b2;
    const real y = a[0] * b2 - a[1] * b3 + a[2] * b0 + a[3] * b1, z = a[0] * b3 + a[1] * b2 - a[2] * b1 + a[3] * b0;
    const real length = sqrt(w * w + x * x + y * y + z * z);
    o[0] = w / length, o[1] = x / length, o[2] = y / length, o[3] = z / length;
  }
}

#include "sarrus_loop.h"

/* the motion within one step, as a polynomial in s = 0 ... 1 */
typedef struct {
  long kind;
  real t, h;
  real q[SR_DIM(SR_NQ)];                            /* where delta counts from */
  real y0[SR_DIM(SR_NY2)], y1[SR_DIM(SR_NY2)], f0[SR_DIM(SR_NY2)], f1[SR_DIM(SR_NY2)];
  real more[7][SR_DIM(SR_NY2)]; /* Dormand-Prince of order 8: its terms; Hermite: delta'' at both ends in more[0] */
  real ca[SR_TERMS_A][SR_DIM(SR_NV)], cd[SR_TERMS_D][SR_DIM(SR_NV)]; /* bridge: Legendre coefficients of v', delta' */
} sr_dense;

/* a passage through a singular position: when, how close, where, and for "release" how long and how badly it ended */
typedef struct {
  real t, sigma, around, dwell, miss;
  real q[SR_DIM(SR_NQ)], v[SR_DIM(SR_NV)];
} sr_crossing;

typedef struct sr_motion {
  /* the machine */
  void (*state)(const real *, const real *, const real *, const real *, const real *, const sr_setup *, real *, real *,
                sr_report *);
  void (*correct)(const real *, const real *, const real *, const sr_setup *, real *, real *, real *, real *,
                  sr_report *);
  void (*select)(const real *, const real *, const sr_setup *, real *, sr_report *);
  void (*linear)(const real *, const real *, const real *, const sr_setup *, long, const real *, const real *, real *,
                 real *, sr_report *);
  /* (t, q, v, p, u): inputs; returns nonzero if it failed */
  long (*law)(const real *, const real *, const real *, const real *, real *);
  /* (t, q, v, lambda, u, p, g): guards of events */
  long (*guard)(const real *, const real *, const real *, const real *, const real *, const real *, real *);
  /* (t, q, v, u, a, lambda, p, on, Rq, Rv): derivatives of M a - b - A' lambda and A a - gamma, columns one after other */
  void (*jacobian)(const real *, const real *, const real *, const real *, const real *, const real *, const real *,
                   const real *, real *, real *);
  /* (t, q0, v0, delta, h, u, p, on, push, rest, right): momenta of the discrete Lagrangian */
  void (*discrete)(const real *, const real *, const real *, const real *, const real *, const real *, const real *,
                   const real *, const real *, real *, real *);
  /* a step of a differential-algebraic form, in place of the method's own, and what it needs (sarrus_dae.h); or null */
  int (*attempt)(struct sr_motion *, real, struct sr_trial *);
  void *form;
  sr_setup setup;         /* setup.active: the rows chosen among the active ones */
  const real *active;     /* rows switched on, one flag for each kept row */
  real chosen[SR_DIM(SR_K)];
  const real *unit;       /* what a residual of each kept row is measured in */
  const real *scale;      /* typical size of each velocity coordinate's motion */
  const real *atol;       /* absolute tolerance of each of them */
  real rtol, drift, baumgarte1, baumgarte2, window, pivot;
  long method, crossing, correction, guards, guards_need_force;
  /* inputs held between samples, taken at first_sample + k sample; sample = 0: asked for at every evaluation; law null:
     u does not change */
  real sample, first_sample, next_sample;
  long samples;
  const real *stops; /* times at which inputs jump or bend: steps end there */
  long stop_count, next_stop;
  real *u;
  /* the run */
  real t, h, t_end, max_step, fixed;
  long chunk, max_steps;
  real q[SR_DIM(SR_NQ)], v[SR_DIM(SR_NV)], a[SR_DIM(SR_NV)];
  real s, s_old, s_ref, s_floor, rate_scale, err_old, a_old[SR_DIM(SR_NV)], h_old, smallest, longest, err_last;
  long started, mark, has_old, rejected_last, rank, here, dependent; /* rank: on the way; here: where it was asked for */
  /* counts */
  long steps, rejected, evaluations, projections, bridges, factorisations;
  /* output rows (t, q, v, a, u): every-th step, or times; pending: a step whose outputs are not all written */
  real *rows;
  long row_count, row_room, every, next_time, time_count, pending;
  const real *times;
  /* events: guard values now (0: not known), those looked at, what counts as zero after firing; direction found */
  real *g, *fresh, *scratch, *noise;
  long *wanted, *fired, *keep;
  /* passages through singular positions */
  sr_crossing *crossings;
  long crossing_count, crossing_room, noted; /* noted: one was, at noted_at */
  real noted_at;
  long released;
  sr_options regular; /* those outside the window */
  sr_dense dense;
  void *memory; /* of the implicit method */
  long failed, bad_guard; /* bad_guard: 1 + the index of the guard that was not a number */
  sr_loop *loop;          /* between the law and the machine; null: nothing */
  const sr_quasi *quasi;  /* for steps in reduced quasi-velocities */
  void *section;          /* its memory */
} sr_motion;

SR_EXPORT long sarrus_motion_size(void) { return (long)sizeof(sr_motion); }

/* delta' for a velocity v at delta */
SR_FN void sr_rate(const real *delta, const real *v, real *out) {
  for (int k = 0; k < SR_NV; k++) out[k] = v[k];
  for (int k = 0; k < SR_TURNS; k++) {
    const real *r = delta + sr_turn_v[k], *w = v + sr_turn_v[k];
    real *o = out + sr_turn_v[k];
    const real square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2], angle = sqrt(square);
    const real c = angle > 1e-3 ? 1 / square - 1 / (2 * angle * tan(angle / 2)) : 1.0 / 12 + square / 720;
    const real x0 = r[1] * w[2] - r[2] * w[1], x1 = r[2] * w[0] - r[0] * w[2], x2 = r[0] * w[1] - r[1] * w[0];
    o[0] += x0 / 2 + c * (r[1] * x2 - r[2] * x1);
    o[1] += x1 / 2 + c * (r[2] * x0 - r[0] * x2);
    o[2] += x2 / 2 + c * (r[0] * x1 - r[1] * x0);
  }
}

/* what the law is given besides the state */
SR_FN const real *sr_numbers(const sr_motion *m) { return m->loop && m->loop->numbers ? m->loop->numbers : m->setup.p; }

/* inputs at a state, into m->u unless they are held; a step that ends at a stop sees what they were just before it */
SR_FN void sr_input(sr_motion *m, real t, const real *q, const real *v) {
  if (!m->law || m->sample > 0) return;
  if (m->next_stop < m->stop_count && t >= m->stops[m->next_stop])
    t = m->stops[m->next_stop] - 4e-16 * fabs(m->stops[m->next_stop]) - 1e-300;
  if (m->law(&t, q, v, sr_numbers(m), m->u)) m->failed = 1;
  if (m->loop) sr_limit(m->loop, 0, m->u, m->u);
}

/* acceleration at a state; returns how well the rows carry (smallest pivot's root or singular value), negative if it failed */
SR_FN real sr_acceleration(sr_motion *m, real t, const real *q, const real *v, const sr_setup *setup, real *a,
                           real *lam) {
  real zero[SR_DIM(SR_NV)];
  sr_report report;
  for (int k = 0; k < SR_NV; k++) zero[k] = 0;
  sr_input(m, t, q, v);
  if (m->correction == SR_BAUMGARTE && SR_K > 0) { /* gamma - a1 (A v - a) - a0 Phi, as a further acceleration */
    real phi[SR_DIM(SR_K)], rate[SR_DIM(SR_K)], dq[SR_DIM(SR_NV)], dv[SR_DIM(SR_NV)];
    m->correct(&t, q, v, setup, phi, rate, dq, dv, &report);
    m->state(&t, q, v, m->u, zero, setup, a, lam, &report);
    for (int k = 0; k < SR_NV; k++) a[k] += m->baumgarte1 * dv[k] + m->baumgarte2 * dq[k];
  } else {
    m->state(&t, q, v, m->u, zero, setup, a, lam, &report);
  }
  m->evaluations++;
  if (!(report.inertia > 0) || m->failed) return -1;
  return report.accepted;
}

/* --- steps in reduced quasi-velocities, in integrators compiled for them (SR_QUASI) ---------------------------------- */

/* y' at y = (delta, v_r), after the place was located */
SR_FN real sr_reduced_slope(sr_motion *m, real t, const real *q, const real *y, real *dy, sr_report *report) {
  real v[SR_DIM(SR_NV)];
  if (!(report->inertia > 0)) return -1;
  m->quasi->spread(m->section, y + SR_NV, 1, v);
  sr_rate(y, v, dy);
  sr_input(m, t, q, v);
  m->quasi->rate(&t, q, v, m->u, &m->setup, m->section, dy + SR_NV, report);
  m->evaluations++;
  return report->inertia > 0 && !m->failed ? report->accepted : -1;
}

/* the same, in the basis of the step */
SR_FN real sr_slope_nearby(sr_motion *m, real t, const real *y, real *dy) {
  real q[SR_DIM(SR_NQ)];
  sr_report report;
  sr_retract(m->q, y, q);
  m->quasi->locate(&t, q, &m->setup, 0, m->section, &report);
  return sr_reduced_slope(m, t, q, y, dy, &report);
}

/* y and y' at the state, where a step begins and gets its basis */
SR_FN int sr_reduced_here(sr_motion *m, real *y, real *dy) {
  sr_report report;
  m->quasi->locate(&m->t, m->q, &m->setup, 1, m->section, &report);
  m->quasi->reduce(m->section, m->v, y + SR_NV);
  if (sr_reduced_slope(m, m->t, m->q, y, dy, &report) < 0) return m->failed ? SR_CALL_FAILED : SR_NOT_FINITE;
  return 0;
}

/* v from reduced quasi-velocities at a configuration near that at which the step began; 0 if that is too far away */
SR_FN int sr_velocity(sr_motion *m, real t, const real *q, const real *reduced, real *v) {
  sr_report report;
  const int near = m->quasi->locate(&t, q, &m->setup, 0, m->section, &report);
  m->quasi->spread(m->section, reduced, 1, v);
  return near && report.inertia > 0;
}

/* y = (delta, v_r), or (if not whole) a change of it, as (delta, v), at the place where y' was asked for last */
SR_FN void sr_in_velocities(const sr_motion *m, real *y, int whole) {
  real reduced[SR_DIM(SR_NV)];
  for (int i = 0; i < SR_NV; i++) reduced[i] = y[SR_NV + i];
  m->quasi->spread(m->section, reduced, whole, y + SR_NV);
}

/* y and y' at the state, where a step begins */
SR_FN int sr_here(sr_motion *m, real *y, real *dy) {
  for (int i = 0; i < SR_NV; i++) {
    y[i] = 0, y[SR_NV + i] = m->v[i];
    dy[i] = m->v[i], dy[SR_NV + i] = m->a[i];
  }
  return SR_QUASI ? sr_reduced_here(m, y, dy) : 0;
}

/* y' at y; returns what sr_acceleration returns */
SR_FN real sr_slope(sr_motion *m, real t, const real *y, real *dy) {
  if (SR_QUASI) return sr_slope_nearby(m, t, y, dy);
  real q[SR_DIM(SR_NQ)], lam[SR_DIM(SR_M)];
  sr_retract(m->q, y, q);
  sr_rate(y, y + SR_NV, dy);
  return sr_acceleration(m, t, q, y + SR_NV, &m->setup, dy + SR_NV, lam);
}

SR_FN real sr_worst(const sr_motion *m, const real *phi) {
  real worst = 0;
  for (int i = 0; i < SR_K; i++) {
    const real size = fabs(phi[i]) / m->unit[i];
    if (!(size <= worst)) worst = size;
  }
  return worst;
}

/* Bring (q, v) back to the constraints by the smallest moves in the mass metric (sheet 2.7). Returns the loop error left.
   Rows that carry little turn a small loop error into a large error of position, so the weaker, the nearer to zero. */
SR_FN real sr_project(sr_motion *m, real t, const sr_setup *setup, real *q, real *v) {
  if (SR_K == 0 || m->correction != SR_PROJECT) return 0;
  real phi[SR_DIM(SR_K)], rate[SR_DIM(SR_K)], dq[SR_DIM(SR_NV)], dv[SR_DIM(SR_NV)], next[SR_DIM(SR_NQ)];
  int fresh = 0; /* dv belongs to q */
  sr_report report;
  m->projections++;
  m->correct(&t, q, v, setup, phi, rate, dq, 0, &report);
  real size = sr_worst(m, phi);
  const real target = m->drift / 16 * (report.accepted < 1 ? report.accepted : 1);
  for (int pass = 0; pass < 12 && size > target; pass++) {
    sr_retract(q, dq, next);
    m->correct(&t, next, v, setup, phi, rate, 0, dv, &report);
    const real now = sr_worst(m, phi);
    fresh = now < size;
    if (!fresh) break;
    for (int i = 0; i < SR_NQ; i++) q[i] = next[i];
    const int done = now <= target || now > size / 4;
    size = now;
    if (done && now <= m->drift) break;
    m->correct(&t, q, v, setup, phi, rate, dq, 0, &report);
  }
  if (!fresh) m->correct(&t, q, v, setup, phi, rate, 0, dv, &report);
  for (int k = 0; k < SR_NV; k++) v[k] += dv[k];
  return size;
}

/* the last digits of the coordinates, in their scales: those that have wound up many turns have few left */
SR_FN real sr_digits(const sr_motion *m, const real *q) {
  real most = 0;
  for (int i = 0; i < SR_PLAIN; i++) {
    const real size = fabs(q[sr_plain_q[i]]) / m->scale[sr_plain_v[i]];
    if (size > most) most = size;
  }
  return 1e-15 * most;
}

/* loop error that counts as closed */
SR_FN real sr_closed(const sr_motion *m, const real *q) { return m->drift + sr_digits(m, q); }

/* error weights of a step of length h: positions by atol and the rounding of their shift, velocities by the machine's own
   pace */
SR_FN void sr_weights(const sr_motion *m, real h, const real *v0, const real *v1, real *w) {
  for (int k = 0; k < SR_NV; k++) {
    const real size = fabs(v0[k]) > fabs(v1[k]) ? fabs(v0[k]) : fabs(v1[k]);
    w[k] = 1 / (m->atol[k] + 2e-15 * h * size);
    w[SR_NV + k] = 1 / (m->atol[k] * m->rate_scale + m->rtol * size);
  }
}

SR_FN real sr_norm(const real *y, const real *w) {
  real s = 0;
  for (int k = 0; k < SR_NY2; k++) s += y[k] * w[k] * (y[k] * w[k]);
  return SR_NY2 > 0 ? sqrt(s / SR_NY2) : 0;
}

/* the machine's pace [1/s]: how fast its coordinates have crossed their own scales so far */
SR_FN void sr_pace(sr_motion *m, const real *v) {
  for (int k = 0; k < SR_NV; k++) {
    const real rate = fabs(v[k]) / m->scale[k];
    if (rate > m->rate_scale) m->rate_scale = rate;
  }
}

/* Rows that depend on others are left out of the motion: which ones is decided here and kept while the rest carries, so
   that the right-hand side stays smooth off the manifold, where dependent rows contradict each other (sheet 2.5). */
SR_FN int sr_choose(sr_motion *m) {
  real fresh[SR_DIM(SR_K)];
  sr_report report;
  sr_setup all = m->setup;
  int changed = 0;
  all.active = m->active;
  all.options.max_rank = m->rank;
  if (m->dependent) m->select(&m->t, m->q, &all, fresh, &report);
  for (int i = 0; i < SR_K; i++) {
    const real flag = m->dependent ? fresh[i] : m->active[i];
    changed |= flag != m->chosen[i];
    m->chosen[i] = flag;
  }
  return changed;
}

#endif
