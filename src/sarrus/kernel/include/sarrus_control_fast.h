/* Tasks without a split (sheet 8, the direct formulation): K = J Mob B and its right-hand side come from the generated
   sparse factor of [[M, A'], [A, 0]], as the acceleration's fast path does. Used while the pivots of all rows carry, no
   task loses rank and no row of K is nothing but rounding; otherwise sarrus_control.h decides. */
#ifndef SARRUS_CONTROL_FAST_H
#define SARRUS_CONTROL_FAST_H

SR_FN int sr_fast_inputs(const real *t, const real *q, const real *v, const real *p, sr_stack *u) {
  real r[SR_DIM(SR_NR)], K[SR_DIM(SR_NT * SR_NU)], b[SR_DIM(SR_NT)], trust[3];
  sr_read(t, r);
  sr_control_fast(t, q, v, r, p, K, b, trust);
  if (!(trust[0] >= p[SR_P_TRUST]) || !(trust[1] > 0) || !(trust[2] > 0)) return 0;
  sr_start_stack(u, SR_NU, p + SR_P_SCALE);
  for (int k = 0, first = 0; k < SR_TASKS; first = sr_task_end[k++])
    sr_level(u, K + first, 1, SR_NT, sr_task_end[k] - first, b + first);
  return u->left == SR_NU - SR_NT;
}

#endif
