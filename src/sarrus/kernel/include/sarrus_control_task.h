/* Task control (sheet 8, 9.5): tasks in strict order follow their references, J v' + J.v = y, whatever else moves.

   direct       K u = y + J Mob h - J a_n with K = J Mob B: by sarrus_control_fast.h, and as "minimal" where that does not carry
   minimal      the same in the basis Z of the free motion, Mob = Z Z'
   partitioned  first the motion, dynamically consistent: p = sum of (J Z)^+ in the order of the tasks, then the posture in
                what they leave free; then the inputs that need the smallest further force A' fC on the constraints
   In all three a task is met exactly if K has full row rank, passive joints or not; what K cannot serve is left out.

   Columns: B, J' of all tasks, h, and POSTURE = tau0 if there is one; y: the tasks; sr_task_end[]: where each of
   the SR_TASKS tasks ends. */
#ifndef SARRUS_CONTROL_TASK_H
#define SARRUS_CONTROL_TASK_H

#include "sarrus_control_motion.h"

/* one task as a level for the inputs */
SR_FN void sr_task_level(sr_stack *u, const sr_split *x, int first, int rows, const real *y) {
  real K[SR_DIM(SR_NT * SR_NU)], b[SR_DIM(SR_BIG)];
  const int r = x->r, open = SR_NV - r;
  const real *h = SR_COLUMN(x, SR_AT_H);
  for (int i = 0; i < rows; i++) {
    const real *J = SR_COLUMN(x, SR_AT_J + first + i);
    const real held = sr_product(J, J, r), moved = sr_product(J + r, J + r, open);
    const real unit = sr_task_unit(x, SR_AT_J + first + i);
    b[i] = unit * (y[first + i] + sr_product(J + r, h + r, open) - sr_product(J, x->c, r));
    for (int k = 0; k < SR_NU; k++) {
      const real *B = SR_COLUMN(x, SR_AT_B + k);
      const real sum = sr_product(J + r, B + r, open), push = sr_product(B + r, B + r, open);
      const real most = (held + moved) * push + moved * (sr_product(B, B, r) + push);
      K[k * rows + i] = sum * sum <= SR_ROUNDING * SR_ROUNDING * most ? 0 : unit * sum;
    }
  }
  sr_level(u, K, 1, rows, rows, b);
}

/* the part of a free force that is left to the levels not yet taken */
SR_FN void sr_left(const sr_stack *p, const real *force, real *out) {
  for (int i = 0; i < p->n; i++) {
    out[i] = 0;
    for (int j = 0; j < p->n && p->left; j++) out[i] += p->N[j * p->n + i] * force[j];
  }
}

/* the motion of tasks and posture (tau0 = 0 without one: the least force); held: what the generalised force J'ft + Nc'tau0
   of this motion loads the constraints with */
SR_FN void sr_task_free(const sr_split *x, const real *y, sr_stack *p, real *held) {
  const int r = x->r, open = SR_NV - r;
  const real *h = SR_COLUMN(x, SR_AT_H) + r;
  real tau[SR_DIM(SR_NV)] = {0}, wish[SR_DIM(SR_NV)], part[SR_DIM(SR_NV)], force[SR_DIM(SR_NV)];
  real unit[SR_DIM(SR_NT)];
  sr_stack s;
  sr_start_stack(p, open, 0);
  for (int k = 0, first = 0; k < SR_TASKS; first = sr_task_end[k++])
    sr_task_motion(p, x, SR_AT_J + first, sr_task_end[k] - first, y + first);
#ifdef SR_AT_POSTURE
  for (int i = 0; i < open; i++) tau[i] = SR_COLUMN(x, SR_AT_POSTURE)[r + i];
#endif
  for (int i = 0; i < open; i++) wish[i] = tau[i] - h[i];
  sr_left(p, wish, part);
  sr_left(p, tau, wish);
  for (int i = 0; i < open; i++) {
    p->x[i] += part[i];
    force[i] = p->x[i] + h[i] - wish[i];
  }
  for (int k = 0; k < SR_NT; k++) unit[k] = sr_task_unit(x, SR_AT_J + k);
  sr_start_stack(&s, SR_NT, unit); /* ft of least norm with J2 ft = p + h2 - N tau0, and J1 ft */
  sr_level(&s, SR_COLUMN(x, SR_AT_J) + r, 1, SR_NV, open, force);
  for (int i = 0; i < r; i++) {
    held[i] = 0;
    for (int k = 0; k < SR_NT; k++) held[i] += SR_COLUMN(x, SR_AT_J + k)[i] * unit[k] * s.x[k];
  }
}

/* level of the further force: fC~ = X (B1 u - held) is to be nothing */
SR_FN void sr_task_light(sr_stack *u, const sr_split *x, const real *inverse, const real *held) {
  real A[SR_DIM(SR_K * SR_K)], Q[SR_DIM(SR_K * SR_K)], T[SR_DIM(SR_K * SR_K)];
  real K[SR_DIM(SR_BIG * SR_SLIM)], b[SR_DIM(SR_BIG)], load[SR_DIM(SR_BIG)];
  const int r = x->r;
  if (r == 0 || u->left == 0) return;
  /* the rows themselves, not scaled: |fC| is that of the sheet */
  for (int k = 0; k < r; k++)
    for (int j = 0; j < SR_K; j++) A[k * SR_K + j] = sr_entry(x, k, j) / inverse[x->order[j]];
  sr_orthonormal(A, SR_K, r, 0, Q, T, SR_K, 0);
  for (int col = 0; col <= SR_NU; col++)
    for (int i = 0; i < r; i++) { /* |Q T^-T load| = |T^-T load| */
      load[i] = col < SR_NU ? SR_COLUMN(x, SR_AT_B + col)[i] : held[i];
      for (int k = 0; k < i; k++) load[i] -= T[i * SR_K + k] * load[k];
      load[i] /= T[i * SR_K + i];
      if (col < SR_NU)
        K[col * r + i] = load[i];
      else
        b[i] = load[i];
    }
  sr_level(u, K, 1, r, r, b);
}

SR_FN void sr_control_task(const sr_split *x, const real *y, const real *inverse, const real *scale, sr_stack *u) {
  sr_stack p;
  real held[SR_DIM(SR_BIG)];
  sr_start_stack(u, SR_NU, scale);
  for (int k = 0, first = 0; k < SR_TASKS; first = sr_task_end[k++])
    sr_task_level(u, x, first, sr_task_end[k] - first, y);
#if !SR_PARTITIONED && !defined(SR_AT_POSTURE)
  (void)inverse, (void)held, (void)p;
#else
  sr_task_free(x, y, &p, held);
  sr_move(u, x, SR_AT_B, SR_AT_H, p.x);
  if (SR_PARTITIONED) sr_task_light(u, x, inverse, held);
#endif
}

#endif
