/* Motion and constraint forces (sheet 9.2): the motion as in sarrus_control_motion.h, and of what the inputs can still do
   without touching it, wanted multipliers
     lambda_c = lambda_d + kf e + ki int e,   e = lambda_d - lambda measured,
   in multiplier space, where a gain cannot leak into the motion. Without memory: lambda_c = lambda_d.
   Columns: B, J', h; y: task, and lambda_d / d of the wanted rows (table sr_wanted[], SR_NF of them). */
#ifndef SARRUS_CONTROL_HYBRID_H
#define SARRUS_CONTROL_HYBRID_H

#include "sarrus_control_force.h"
#include "sarrus_control_motion.h"

SR_FN void sr_control_hybrid(const sr_split *x, const real *y, const real *goal, const real *scale, sr_stack *u) {
  sr_stack p;
  sr_start_stack(&p, SR_NV - x->r, 0);
  sr_task_motion(&p, x, SR_AT_J, SR_NT, y);
  sr_start_stack(u, SR_NU, scale);
  sr_move(u, x, SR_AT_B, SR_AT_H, p.x);
  sr_push(u, x, SR_AT_B, SR_AT_H, sr_wanted, SR_NF, goal);
}

/* lambda_c from what is measured; memory: the integral of e, then 1 once there is a last time, and that time */
SR_FN void sr_force_feedback(const real *t, const real *goal, const real *measured, const real *inverse, real kf, real ki,
                             real *memory, real *out) {
  const real h = t[0] - memory[SR_NF + 1];
  for (int e = 0; e < SR_NF; e++) { /* what is measured first is from before there was a command */
    const real error = memory[SR_NF] > 0 ? goal[e] - measured[sr_wanted_row[e]] / inverse[sr_wanted[e]] : 0;
    memory[e] += h * error;
    out[e] = goal[e] + kf * error + ki * memory[e];
  }
  memory[SR_NF] = 1, memory[SR_NF + 1] = t[0];
}

#endif
