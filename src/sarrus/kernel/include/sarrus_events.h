/* Events: where inside a step a guard passes zero, and what is put back there. */
#ifndef SARRUS_EVENTS_H
#define SARRUS_EVENTS_H

/* passages after the present, to which an event has moved back, are still to come */
SR_FN void sr_forget(sr_motion *m) {
  const real now = m->t + 1e-6 * m->dense.h;
  while (m->crossing_count > 0 && m->crossings[m->crossing_count - 1].t > now) m->crossing_count--;
  if (m->noted_at > now) m->noted = 0;
}

/* which guards fire at s = first (now in the state), all that pass zero within rounding of it */
SR_FN int sr_fire(sr_motion *m, real first, long which) {
  real *at_root = m->fresh, *later = m->scratch, q[SR_DIM(SR_NQ)], v[SR_DIM(SR_NV)];
  const real s = first + 1e-12 < 1 ? first + 1e-12 : 1;
  sr_glance(m, s, q, v);
  sr_project(m, m->dense.t + s * m->dense.h, &m->setup, q, v);
  if (sr_guards(m, m->dense.t + s * m->dense.h, q, v, later)) return SR_CALL_FAILED;
  if (sr_guards(m, m->t, m->q, m->v, at_root)) return SR_CALL_FAILED;
  for (long k = 0; k < m->guards; k++) {
    const int now = k == which || sr_passes(m, (int)k, m->g[k], later[k]) || sr_passes(m, (int)k, m->g[k], at_root[k]);
    m->fired[k] = now ? (m->g[k] < 0 ? 1 : -1) : 0;
    m->keep[k] = now;
    if (!now) continue;
    const real noise = 1e-9 * fabs(m->g[k]), left = 2 * fabs(at_root[k]);
    m->noise[k] = noise > left ? noise : left;
    m->g[k] = -m->g[k];
  }
  return SR_FIRED;
}

/* the earliest event inside the step; when there is one the state is put there */
SR_FN int sr_events(sr_motion *m) {
  if (!m->guards) return 0;
  enum { points = 4 };
  real q[SR_DIM(SR_NQ)], v[SR_DIM(SR_NV)], a[SR_DIM(SR_NV)], first = 2, low = 0;
  const real span = (m->t - m->dense.t) / m->dense.h; /* less than 1 after a stop at a singular position */
  int unknown = 0;
  long which = -1;
  for (long k = 0; k < m->guards; k++) unknown |= m->g[k] == 0; /* starts on its root: look where it goes first */
  for (int point = unknown ? 0 : 1; point <= points; point++) {
    const real high = point > 0 ? span * point / points : 1e-4 * span;
    if (point < points) sr_glance(m, high, q, v);
    if (sr_guards(m, m->dense.t + high * m->dense.h, point < points ? q : m->q, point < points ? v : m->v, m->fresh))
      return SR_CALL_FAILED;
    for (long k = 0; k < m->guards; k++) {
      if (!sr_passes(m, (int)k, m->g[k], m->fresh[k])) continue;
      const real at = sr_root(m, (int)k, low, high, m->g[k], m->fresh[k], m->scratch);
      if (m->failed) return SR_CALL_FAILED;
      if (at < first) first = at, which = k;
    }
    if (first <= 1) break;
    for (long k = 0; k < m->guards; k++)
      if (m->fresh[k] != 0 && (m->g[k] != 0 || fabs(m->fresh[k]) > m->noise[k])) m->g[k] = m->fresh[k];
    low = high;
  }
  if (first > 1) return 0;
  sr_inside(m, first, q, v, a);
  m->t = m->dense.t + first * m->dense.h;
  sr_forget(m);
  for (int i = 0; i < SR_NQ; i++) m->q[i] = q[i];
  for (int i = 0; i < SR_NV; i++) m->v[i] = v[i], m->a[i] = a[i];
  return sr_fire(m, first, which);
}

/* back to where the last step began: nobody knows what events it passed */
SR_FN void sr_undo(sr_motion *m) {
  for (int i = 0; i < SR_NQ; i++) m->q[i] = m->dense.q[i];
  const real *v = sr_is_carried(m) ? m->dense.f0 : m->dense.y0 + SR_NV;
  for (int i = 0; i < SR_NV; i++) m->v[i] = v[i];
  m->t = m->dense.t;
  m->steps--;
  sr_forget(m);
}

#endif
