/* The motion inside a step: values at s = 0 ... 1, output rows and the roots of guards. */
#ifndef SARRUS_DENSE_H
#define SARRUS_DENSE_H

/* quintic and cubic Hermite: values, slopes and, for delta, second derivatives at both ends */
SR_FN void sr_hermite_at(const sr_dense *d, real s, real *y) {
  const real h = d->h, r = 1 - s;
  const real a0 = r * r * r * (1 + 3 * s + 6 * s * s), b0 = s * r * r * r * (1 + 3 * s), c0 = s * s * r * r * r / 2;
  const real a1 = s * s * s * (1 + 3 * r + 6 * r * r), b1 = -r * s * s * s * (1 + 3 * r), c1 = r * r * s * s * s / 2;
  const real p0 = r * r * (1 + 2 * s), p1 = s * s * (1 + 2 * r), q0 = s * r * r, q1 = -r * s * s;
  for (int i = 0; i < SR_NV; i++) {
    const int j = SR_NV + i;
    y[i] = a0 * d->y0[i] + a1 * d->y1[i] + h * (b0 * d->f0[i] + b1 * d->f1[i]) +
           h * h * (c0 * d->more[0][i] + c1 * d->more[0][j]);
    y[j] = p0 * d->y0[j] + p1 * d->y1[j] + h * (q0 * d->f0[j] + q1 * d->f1[j]);
  }
}

SR_FN void sr_dense_at(const sr_dense *d, real s, real *y) {
  if (d->kind == SR_BRIDGED) {
    sr_bridge_at(d, 2 * s - 1, y);
  } else if (d->kind == SR_EIGHT) {
    for (int i = 0; i < SR_NY2; i++) {
      real z = 0;
      for (int r = 6; r >= 0; r--) z = (z + d->more[r][i]) * (r % 2 == 0 ? s : 1 - s);
      y[i] = d->y0[i] + z;
    }
  } else {
    sr_hermite_at(d, s, y);
  }
}

/* second derivative of delta at both ends: v' but for turns, where N(delta) changes too */
SR_FN void sr_bend(const sr_dense *d, real *out) {
  real up[SR_DIM(SR_NY2)], down[SR_DIM(SR_NY2)], rate_up[SR_DIM(SR_NV)], rate_down[SR_DIM(SR_NV)];
  const real e = 1e-5 * d->h;
  for (int i = 0; i < SR_NV; i++) out[i] = d->f0[SR_NV + i], out[SR_NV + i] = d->f1[SR_NV + i];
  if (SR_TURNS == 0) return;
  for (int i = 0; i < SR_NY2; i++) up[i] = d->y1[i] + e * d->f1[i], down[i] = d->y1[i] - e * d->f1[i];
  sr_rate(up, up + SR_NV, rate_up);
  sr_rate(down, down + SR_NV, rate_down);
  for (int i = 0; i < SR_NV; i++) out[SR_NV + i] = (rate_up[i] - rate_down[i]) / (2 * e);
}

/* is it v_r that the polynomial gives? That of order 8 has the values that the step carried. */
SR_FN int sr_is_carried(const sr_motion *m) { return SR_QUASI && m->dense.kind == SR_EIGHT; }

/* configuration and velocity inside the step, not yet brought back to the constraints */
SR_FN void sr_glance(sr_motion *m, real s, real *q, real *v) {
  real y[SR_DIM(SR_NY2)];
  sr_dense_at(&m->dense, s, y);
  sr_retract(m->dense.q, y, q);
  for (int i = 0; i < SR_NV; i++) v[i] = y[SR_NV + i];
  if (sr_is_carried(m)) sr_velocity(m, m->dense.t + s * m->dense.h, q, y + SR_NV, v);
}

SR_FN void sr_row(sr_motion *m, real t, const real *q, const real *v, const real *a) {
  real *row = m->rows + m->row_count++ * (1 + SR_NQ + 2 * SR_NV + SR_NU);
  *row++ = t;
  for (int i = 0; i < SR_NQ; i++) *row++ = q[i];
  for (int i = 0; i < SR_NV; i++) *row++ = v[i];
  for (int i = 0; i < SR_NV; i++) *row++ = a[i];
  sr_input(m, t, q, v);
  for (int i = 0; i < SR_NU; i++) *row++ = m->u[i];
}

/* state inside the step, brought back to the constraints, with its acceleration */
SR_FN void sr_inside(sr_motion *m, real s, real *q, real *v, real *a) {
  real lam[SR_DIM(SR_M)];
  const real t = m->dense.t + s * m->dense.h;
  sr_glance(m, s, q, v);
  if (m->dense.kind == SR_BRIDGED) {
    real before[SR_DIM(SR_NQ)], speed[SR_DIM(SR_NV)];
    for (int i = 0; i < SR_NQ; i++) before[i] = q[i];
    for (int i = 0; i < SR_NV; i++) speed[i] = v[i];
    const real support = sr_acceleration(m, t, q, v, &m->setup, a, lam);
    sr_bridge_acceleration(&m->dense, 2 * s - 1, a);
    real moved = 0;
    if (support > 1e-6 * m->s_ref) {
      sr_project(m, t, &m->setup, q, v);
      for (int i = 0; i < SR_PLAIN; i++) {
        const real size = fabs(q[sr_plain_q[i]] - before[sr_plain_q[i]]) / m->scale[sr_plain_v[i]];
        if (size > moved) moved = size;
      }
      if (moved < 0.01 * support) return; /* the other branch is about as far away as the support says */
    }
    for (int i = 0; i < SR_NQ; i++) q[i] = before[i];
    for (int i = 0; i < SR_NV; i++) v[i] = speed[i];
    return;
  }
  sr_project(m, t, &m->setup, q, v);
  sr_acceleration(m, t, q, v, &m->setup, a, lam);
}

/* rows asked for by time within (.., end]; 1 if there was no room for all */
SR_FN int sr_timed_rows(sr_motion *m, real end) {
  real q[SR_DIM(SR_NQ)], v[SR_DIM(SR_NV)], a[SR_DIM(SR_NV)];
  while (m->next_time < m->time_count && m->times[m->next_time] <= end) {
    if (m->row_count >= m->row_room) return 1;
    const real t = m->times[m->next_time++];
    if (t == m->t) {
      sr_row(m, t, m->q, m->v, m->a);
      continue;
    }
    sr_inside(m, (t - m->dense.t) / m->dense.h, q, v, a);
    sr_row(m, t, q, v, a);
  }
  return 0;
}

/* guards at a state; nonzero if one failed or is not a number */
SR_FN int sr_guards(sr_motion *m, real t, const real *q, const real *v, real *g) {
  real lam[SR_DIM(SR_M)], a[SR_DIM(SR_NV)];
  for (int i = 0; i < SR_M; i++) lam[i] = 0;
  sr_input(m, t, q, v);
  if (m->guards_need_force) {
    sr_setup all = m->setup;
    all.active = m->active;
    sr_acceleration(m, t, q, v, &all, a, lam);
  }
  if (m->guard(&t, q, v, lam, m->u, m->setup.p, g)) m->failed = 1;
  for (long k = 0; k < m->guards && !m->failed; k++)
    if (g[k] != g[k]) m->failed = 1, m->bad_guard = k + 1;
  return m->failed != 0;
}

/* does a guard that was g0 and is g1 pass zero the way it is asked to? */
SR_FN int sr_passes(const sr_motion *m, int k, real g0, real g1) {
  if (m->wanted[k] == SR_UNWATCHED) return 0;
  return (g0 < 0 && g1 >= 0 && m->wanted[k] >= 0) || (g0 > 0 && g1 <= 0 && m->wanted[k] <= 0);
}

/* Root of guard k between s = low (value g_low) and high, by the Illinois rule with bisection; the end after the root. */
SR_FN real sr_root(sr_motion *m, int k, real low, real high, real g_low, real g_high, real *g) {
  real q[SR_DIM(SR_NQ)], v[SR_DIM(SR_NV)];
  const real sign = g_low > 0 ? 1 : -1;
  for (int pass = 0; pass < 100 && high - low > 4e-16; pass++) {
    real s = pass % 3 == 2 ? (low + high) / 2 : low - g_low * (high - low) / (g_high - g_low);
    if (!(s > low && s < high)) s = (low + high) / 2;
    if (!(s > low && s < high)) break;
    sr_glance(m, s, q, v);
    sr_project(m, m->dense.t + s * m->dense.h, &m->setup, q, v);
    if (sr_guards(m, m->dense.t + s * m->dense.h, q, v, g)) return high;
    if (g[k] * sign > 0)
      low = s, g_low = g[k], g_high *= 0.5;
    else
      high = s, g_high = g[k] == 0 ? -sign * 1e-300 : g[k], g_low *= 0.5;
    if (g[k] == 0) break;
  }
  return high;
}

#endif
