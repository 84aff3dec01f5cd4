/* One accepted step after another: step size, singular positions, drift, outputs and events. */
#ifndef SARRUS_RUN_H
#define SARRUS_RUN_H

/* a machine that crosses its own scales so many times a second has diverged: squares must stay finite */
#define SR_WILD 1e30

SR_FN int sr_is_fixed(const sr_motion *m) { return m->method >= SR_RK4; }

/* acceleration and support at the current state, after any change there */
SR_FN int sr_refresh(sr_motion *m) {
  real lam[SR_DIM(SR_M)];
  m->s = sr_acceleration(m, m->t, m->q, m->v, &m->setup, m->a, lam);
  if (m->s < 0) return m->failed ? SR_CALL_FAILED : SR_NOT_FINITE;
  if (m->s > m->s_ref && m->s < 1e300) m->s_ref = m->s;
  m->has_old = 0;
  return 0;
}

/* a first step after Hairer, Norsett & Wanner II.4, in units of the error weights and of the machine's pace */
SR_FN int sr_first_step(sr_motion *m) {
  real w[SR_DIM(SR_NY2)], y[SR_DIM(SR_NY2)], f[SR_DIM(SR_NY2)], size[SR_DIM(SR_NY2)];
  sr_weights(m, 0, m->v, m->v, w);
  for (int i = 0; i < SR_NV; i++) {
    f[i] = m->v[i], f[SR_NV + i] = m->a[i];
    size[i] = m->scale[i], size[SR_NV + i] = m->scale[i] * m->rate_scale;
  }
  const real d0 = sr_norm(size, w), d1 = sr_norm(f, w), order = m->method == SR_DOP853 ? 8 : 5;
  real h = d1 > 1e-10 * d0 ? 0.01 * d0 / d1 : 1e-6 * (m->t_end - m->t);
  if (h > m->max_step) h = m->max_step;
  if (h > m->t_end - m->t) h = m->t_end - m->t;
  const int failed = sr_here(m, y, f);
  if (failed) return failed;
  for (int i = 0; i < SR_NY2; i++) y[i] += h * f[i];
  const real s = sr_slope(m, m->t + h, y, size);
  if (s < 0) return m->failed ? SR_CALL_FAILED : (m->h = h * 1e-3, 0);
  for (int i = 0; i < SR_NY2; i++) size[i] = (size[i] - f[i]) / h;
  if (SR_QUASI) sr_in_velocities(m, size, 0);
  const real unit = 1 / m->rate_scale; /* of time: the machine's own, so that no unit of the user's matters */
  const real d2 = sr_norm(size, w), most = d1 > unit * d2 ? unit * d1 : unit * unit * d2;
  const real h1 = most > 0 ? unit * pow(0.01 / most, 1 / order) : h;
  m->h = 100 * h < h1 ? 100 * h : h1;
  if (m->h < h * 1e-3) m->h = h * 1e-3;
  return 0;
}

/* a tick of the loop, or a command that takes effect */
SR_FN int sr_tick(sr_motion *m) {
  sr_loop *l = m->loop;
  const real slack = 1e-9 * m->sample;
  real mq[SR_DIM(SR_NQ)], mv[SR_DIM(SR_NV)], a[SR_DIM(SR_NV)], lam[SR_DIM(SR_M)];
  real due = m->first_sample + m->samples * m->sample; /* a sum would drift by a rounding error each time */
  int changed = 0;
  while (m->t >= due - slack) {
    if (l->count >= l->room) return SR_CALL_FAILED;
    real *command = l->queue + (l->head + l->count++) % l->room * (1 + SR_NU);
    sr_measure(l, m->q, m->v, mq, mv);
    command[0] = due + l->delay;
    for (int i = 0; i < SR_NU; i++) command[1 + i] = m->u[i];
    long failed;
    if (l->step) {
      if (sr_acceleration(m, m->t, m->q, m->v, &m->setup, a, lam) < 0) return m->failed ? SR_CALL_FAILED : SR_NOT_FINITE;
      failed = l->step(&m->t, mq, mv, sr_numbers(m), lam, l->memory, command + 1);
    } else {
      failed = m->law(&m->t, mq, mv, sr_numbers(m), command + 1);
    }
    if (failed) {
      m->failed = 1;
      return SR_CALL_FAILED;
    }
    due = m->first_sample + ++m->samples * m->sample;
  }
  m->next_sample = due;
  for (; l->count > 0; l->count--, l->head = (l->head + 1) % l->room) {
    real *command = l->queue + l->head * (1 + SR_NU);
    if (m->t < command[0] - slack) {
      if (command[0] < due) m->next_sample = command[0];
      break;
    }
    sr_limit(l, m->sample, m->u, command + 1);
    for (int i = 0; i < SR_NU; i++) m->u[i] = command[1 + i];
    changed = 1;
  }
  return changed ? sr_refresh(m) : 0;
}

SR_FN int sr_sample(sr_motion *m) {
  if (!m->law || m->sample <= 0 || m->t < m->next_sample - 1e-9 * m->sample) return 0;
  if (m->loop) return sr_tick(m);
  if (m->law(&m->t, m->q, m->v, m->setup.p, m->u)) {
    m->failed = 1;
    return SR_CALL_FAILED;
  }
  m->samples++;
  m->next_sample = m->first_sample + m->samples * m->sample;
  return sr_refresh(m);
}

/* on from a stop, with the inputs that hold after it */
SR_FN int sr_pass_stop(sr_motion *m) {
  if (m->next_stop >= m->stop_count || m->t < m->stops[m->next_stop]) return 0;
  while (m->next_stop < m->stop_count && m->t >= m->stops[m->next_stop]) m->next_stop++;
  const int code = sr_refresh(m);
  if (!code && m->every) sr_row(m, m->t, m->q, m->v, m->a);
  return code;
}

SR_FN int sr_start(sr_motion *m) {
  m->setup.active = m->chosen;
  if (m->mark) sr_choose(m); /* after an event that changed nothing, perhaps at a singular position, the rows stay */
  int code = sr_refresh(m);
  if (!code) code = sr_sample(m);
  if (code) return code;
  sr_pace(m, m->v);
  for (int i = 0; i < SR_NV; i++) { /* at rest: the pace that the acceleration sets */
    const real rate = sqrt(fabs(m->a[i]) / m->scale[i]);
    if (rate > m->rate_scale && m->steps == 0) m->rate_scale = rate;
  }
  if (m->rate_scale < 1 / (m->t_end - m->t)) m->rate_scale = 1 / (m->t_end - m->t); /* slower than that is rest */
  if (!sr_is_fixed(m) && !(m->h > 0)) code = sr_first_step(m);
  if (code) return code;
  if (m->guards && sr_guards(m, m->t, m->q, m->v, m->fresh)) return SR_CALL_FAILED;
  for (long k = 0; k < m->guards; k++) {
    /* on its own root: it keeps the sign with which it got there, or shows a new one if something was changed there */
    if (!m->keep[k] || fabs(m->fresh[k]) > m->noise[k])
      m->g[k] = m->fresh[k];
    else if (m->mark && m->keep[k] != SR_ARMED)
      m->g[k] = 0;
  }
  m->err_old = 1e-4;
  m->started = 1;
  m->dense.t = m->t, m->dense.h = 1;
  if (m->every && m->mark) sr_row(m, m->t, m->q, m->v, m->a);
  if (!m->every)
    while (m->next_time < m->time_count && m->times[m->next_time] <= m->t && m->row_count < m->row_room) {
      if (m->times[m->next_time++] == m->t) sr_row(m, m->t, m->q, m->v, m->a);
    }
  m->mark = 0;
  return 0;
}

/* the end of a step: back to the constraints, its acceleration and support; 0, or why it cannot be the end. reduced: the
   reduced quasi-velocities that the step carried instead of v_raw, or null; they need no correction. */
SR_FN int sr_arrive(sr_motion *m, real t, const real *delta, const real *v_raw, const real *reduced, real *q, real *v,
                    real *a, real *s) {
  real lam[SR_DIM(SR_M)];
  sr_retract(m->q, delta, q);
  for (int i = 0; i < SR_NV; i++) v[i] = v_raw[i];
  const real left = sr_project(m, t, &m->setup, q, v);
  const int lost = !(left <= sr_closed(m, q)) && !m->released; /* constraints that are dropped may be broken */
  if (reduced && !sr_velocity(m, t, q, reduced, v)) return SR_NOT_FINITE;
  *s = sr_acceleration(m, t, q, v, &m->setup, a, lam);
  if (*s < 0) return m->failed ? SR_CALL_FAILED : SR_NOT_FINITE;
  return lost ? SR_LOST : 0;
}

SR_FN void sr_accept(sr_motion *m, real h, const real *q, const real *v, const real *a, real s) {
  for (int i = 0; i < SR_NV; i++) m->a_old[i] = m->a[i], m->v[i] = v[i], m->a[i] = a[i];
  for (int i = 0; i < SR_NQ; i++) m->q[i] = q[i];
  m->t += h;
  m->h_old = h, m->has_old = 1, m->s_old = m->s, m->s = s;
  if (s > m->s_ref && s < 1e300) m->s_ref = s;
  if (h < m->smallest) m->smallest = h;
  if (h > m->longest) m->longest = h;
  sr_pace(m, v);
  m->steps++;
}

SR_FN void sr_note(sr_motion *m, real t, real sigma, real around, real dwell, real miss, const real *q, const real *v) {
  if (m->noted && fabs(m->noted_at - t) <= 1e-3 * m->h_old && dwell == 0) return;
  m->noted = 1, m->noted_at = t;
  if (m->crossing_count >= m->crossing_room) return;
  sr_crossing *c = m->crossings + m->crossing_count++;
  c->t = t, c->sigma = sigma, c->around = around, c->dwell = dwell, c->miss = miss;
  for (int i = 0; i < SR_NQ; i++) c->q[i] = q[i];
  for (int i = 0; i < SR_NV; i++) c->v[i] = v[i];
}

/* Is the machine, nothing keeping its loops closed, too far from its branch to go over a position with this support? */
SR_FN int sr_is_astray(sr_motion *m, real t, const real *q, const real *v, real support) {
  real phi[SR_DIM(SR_K)], rate[SR_DIM(SR_K)], dv[SR_DIM(SR_NV)];
  sr_report report;
  if (m->correction == SR_PROJECT) return 0;
  m->correct(&t, q, v, &m->setup, phi, rate, 0, dv, &report);
  const real open = sr_worst(m, phi), part = support / m->s_ref;
  return open > 1e-13 + sr_digits(m, q) && open > SR_OPEN * part * part; /* the former: sheet 2.5; rounding is left out */
}

/* one bridge of about h in place of a step */
SR_FN int sr_bridge_step(sr_motion *m, real h, real limit) {
  real q[SR_DIM(SR_NQ)], v[SR_DIM(SR_NV)], a[SR_DIM(SR_NV)], s, where = 0, sigma = 0, around = 1, y[SR_DIM(SR_NY2)];
  const real end = m->t_end;
  m->t_end = limit;
  int code = sr_bridge(m, h, &m->dense, q, v, &where, &sigma, &around);
  m->t_end = end;
  if (code) return code;
  if (sr_is_astray(m, m->t, m->q, m->v, sigma)) return SR_LOST;
  const real length = m->dense.h, t0 = m->t;
  const real t_at = t0 + (where + 1) / 2 * length;
  const int passed = sigma < (around > 1e-5 ? 1e-3 * around : 1e-8); /* the latter is rounding */
  sr_bridge_at(&m->dense, 1, y);
  code = sr_arrive(m, t0 + length, y, y + SR_NV, 0, q, v, a, &s);
  if (code == SR_CALL_FAILED || code == SR_NOT_FINITE) return code;
  if (sr_is_astray(m, t0 + length, q, v, sigma)) return SR_LOST;
  sr_accept(m, length, q, v, a, s);
  if (t0 + length >= limit) m->t = limit;
  if (m->dependent) { /* other rows may carry better on this side */
    sr_choose(m);
    code = sr_refresh(m);
    if (code) return code;
  }
  if (passed) {
    sr_bridge_at(&m->dense, where, y);
    sr_retract(m->dense.q, y, q);
    const int own_start = where < -1 + 1e-6;
    if (m->crossing == SR_STOP && !own_start) {
      for (int i = 0; i < SR_NQ; i++) m->q[i] = q[i];
      for (int i = 0; i < SR_NV; i++) m->v[i] = y[SR_NV + i];
      sr_bridge_acceleration(&m->dense, where, m->a);
      m->t = t_at;
    }
    sr_note(m, t_at, sigma, around, 0, 0, q, y + SR_NV);
    if (m->crossing == SR_STOP && !own_start) return SR_CROSSED;
  }
  return 0;
}

/* "release" (sheet 8 of the first paper): inside the window the weak directions are dropped, outside they are taken up again */
SR_FN int sr_release(sr_motion *m) {
  sr_setup full = m->setup;
  sr_report report;
  real phi[SR_DIM(SR_K)], rate[SR_DIM(SR_K)], dq[SR_DIM(SR_NV)], miss = 0;
  full.options.mode = 1, full.options.tolerance = 1e-13, full.options.max_rank = m->rank;
  m->correct(&m->t, m->q, m->v, &full, phi, rate, dq, 0, &report);
  const real support = report.rank < m->rank ? 0 : report.accepted;
  if (!m->released && support < m->window * m->s_ref) {
    m->setup.options.mode = 1;
    m->setup.options.tolerance = m->window * m->s_ref;
    m->correct(&m->t, m->q, m->v, &m->setup, phi, rate, dq, 0, &report);
    m->setup.options.max_rank = (long)report.rank;
    m->setup.options.tolerance = 1e-13;
    m->released = 1;
    sr_note(m, m->t, support, m->s_ref, 1e-300, 0, m->q, m->v);
    return sr_refresh(m);
  }
  if (m->released && support > 2 * m->window * m->s_ref) {
    m->setup.options = m->regular;
    m->released = 0;
    for (int i = 0; i < SR_K; i++) {
      const real size = fabs(rate[i]) / m->unit[i] / m->rate_scale;
      if (size > miss) miss = size;
    }
    sr_crossing *c = m->crossings + m->crossing_count - 1;
    if (m->crossing_count > 0) c->dwell = m->t - c->t, c->miss = miss, c->t += c->dwell / 2;
    if (!(sr_project(m, m->t, &m->setup, m->q, m->v) <= sr_closed(m, m->q))) return SR_LOST;
    return sr_refresh(m);
  }
  return 0;
}

/* how far to step: the controller's length, the user's, the next sample, the end */
SR_FN real sr_length(const sr_motion *m, real left) {
  real h = sr_is_fixed(m) ? m->fixed : (m->h < m->max_step ? m->h : m->max_step);
  if (m->crossing == SR_RELEASE && m->has_old && m->s < 20 * m->window * m->s_ref) {
    const real slope = fabs(m->s - m->s_old) / m->h_old, most = slope > 0 ? 0.5 * m->window * m->s_ref / slope : h;
    if (!m->released && h > most) h = most;
    if (m->released && h > m->h_old) h = m->h_old; /* what is dropped has no support to measure: keep the pace */
  }
  const int stretch = h * (sr_is_fixed(m) ? 1 + 1e-9 : 1.01) >= left; /* rather than a tiny step at the end */
  return stretch && (sr_is_fixed(m) || left <= m->max_step * (1 + 1e-9)) ? left : h < left ? h : left;
}

/* the time a bridge should take: until the rows carry as well as here again, on the way that the machine takes */
SR_FN real sr_span(const sr_motion *m, real h) {
  sr_setup exact = m->setup;
  exact.active = m->active;
  exact.options.mode = 1, exact.options.tolerance = 1e-13, exact.options.max_rank = m->rank;
  sr_dense way;
  sr_bridge_start(m, &way, h);
  const real first = sr_bridge_support(m, &way, -1, &exact), shortest = sr_is_fixed(m) ? 4 * h : h;
  const real most = sr_is_fixed(m) ? 400 * h : (m->method == SR_DOP853 ? 4 * h : 40 * h); /* a bridge is of order 10 */
  for (real span = shortest; span <= most; span *= 1.3) {
    sr_bridge_start(m, &way, span);
    if (sr_bridge_support(m, &way, 1, &exact) >= first) return span;
  }
  return shortest;
}

SR_FN int sr_attempt(sr_motion *m, real h, sr_trial *x) {
  const int failed = sr_begin(m, x);
  if (failed) return failed;
  if (m->attempt) return m->attempt(m, h, x);
  switch (m->method) {
    case SR_DOP853: return sr_step_dop853(m, h, x);
    case SR_DOPRI5: return sr_step_dopri5(m, h, x);
    case SR_RADAU: return sr_step_radau(m, h, x);
    case SR_RK4: return sr_step_rk4(m, h, x);
    case SR_EULER: return sr_step_euler(m, h, x);
    default: return sr_step_variational(m, h, x);
  }
}

/* Whether the rows, all of them, are weak where a trial found the pivots least, which estimate their support */
SR_FN int sr_is_weak(sr_motion *m, const sr_trial *x, int fine, const real *q_end, real s_end) {
  real q[SR_DIM(SR_NQ)], phi[SR_DIM(SR_K)], rate[SR_DIM(SR_K)], dq[SR_DIM(SR_NV)];
  sr_setup all = m->setup;
  sr_report report;
  const int at_end = fine && s_end < x->weakest;
  all.active = m->active;
  all.options.mode = 1, all.options.max_rank = m->rank;
  sr_retract(m->q, x->there, q);
  m->correct(&x->where, at_end ? q_end : q, x->there + SR_NV, &all, phi, rate, dq, 0, &report);
  return report.rank < m->rank || report.accepted < 0.2 * m->s_ref;
}

/* Whether a trial that found its rows weak came near a singular position. It did not where only the rows chosen among
   dependent ones are weak, nor is that known where the trial went astray by as much as the machine moves: a shorter one
   will tell. */
SR_FN int sr_is_singular(sr_motion *m, const sr_trial *x, int fine, const real *q_end, real s_end) {
  if (!fine && x->error * m->rtol > 0.1) return 0;
  return !m->dependent || sr_is_weak(m, x, fine, q_end, s_end);
}

/* the motion inside the step just made, for outputs and events */
SR_FN int sr_remember(sr_motion *m, real h, sr_trial *x, const real *a1) {
  sr_dense *d = &m->dense;
  d->t = m->t, d->h = h;
  d->kind = m->method == SR_DOP853 ? SR_EIGHT : SR_HERMITE;
  for (int i = 0; i < SR_NQ; i++) d->q[i] = m->q[i];
  for (int i = 0; i < SR_NY2; i++) d->y0[i] = x->y0[i], d->y1[i] = x->y1[i], d->f0[i] = x->k[0][i];
  if (sr_is_carried(m)) {
    if (sr_slope_nearby(m, m->t + h, x->y1, d->f1) < 0) return m->failed ? SR_CALL_FAILED : SR_NOT_FINITE;
    return sr_dense_dop853(m, h, x, d->f1, d);
  }
  if (SR_QUASI) {
    real q[SR_DIM(SR_NQ)];
    sr_retract(m->q, x->y1, q);
    for (int i = 0; i < SR_NV; i++) d->y0[SR_NV + i] = m->v[i], d->f0[SR_NV + i] = m->a[i];
    if (!sr_velocity(m, m->t + h, q, x->y1 + SR_NV, d->y1 + SR_NV)) return SR_NOT_FINITE;
  }
  sr_rate(d->y1, d->y1 + SR_NV, d->f1);
  for (int i = 0; i < SR_NV; i++) d->f1[SR_NV + i] = a1[i];
  if (d->kind == SR_EIGHT) return sr_dense_dop853(m, h, x, d->f1, d);
  sr_bend(d, d->more[0]);
  return 0;
}

/* does anybody want to know what happens inside the step that ends at t? */
SR_FN int sr_is_watched(const sr_motion *m, real t) {
  return m->guards > 0 || (!m->every && m->next_time < m->time_count && m->times[m->next_time] < t);
}

/* step size after an error of `error` tolerances */
SR_FN real sr_factor_of(const sr_motion *m, real error) {
  const real order = m->method == SR_DOP853 ? 8 : (m->method == SR_RADAU ? 4 : 5), beta = 0.04;
  const real e = error > 1e-10 ? error : 1e-10;
  real f = 0.9 * pow(e, -(1 / order - 0.2 * beta)) * pow(m->err_old, beta);
  if (error > 1) f = 0.9 * pow(e, -1 / order);
  f = f > 5 ? 5 : (f < 0.2 ? 0.2 : f);
  return m->rejected_last && f > 1 ? 1 : f;
}

SR_FN int sr_reject(sr_motion *m, real h, real factor, int why) {
  m->rejected++;
  m->rejected_last = 1;
  m->h = h * factor;
  const real floor = 1e-14 * (fabs(m->t) + m->s_floor);
  if (sr_is_fixed(m) || m->h < floor) return why;
  return 0;
}

/* Does the support of the rows sink towards a singular position within a step that starts with m->s and ends with s? Seen
   by a fall, by a stage weaker than both ends, or by the trend of the last step, which would end below zero. */
SR_FN int sr_dips(const sr_motion *m, real h, real weakest, real s) {
  const real least = s < m->s ? s : m->s, most = s > m->s ? s : m->s;
  const real low = weakest < least ? weakest : least;
  if (m->has_old && m->s < 0.2 * m->s_ref && m->s * m->h_old < (m->s_old - m->s) * h) return 1;
  return low < 0.2 * m->s_ref && (low < 0.35 * most || low < 0.75 * least);
}

/* one accepted step, without its outputs and events; *watched: the motion inside is in m->dense */
SR_FN int sr_step(sr_motion *m, real limit, int *watched) {
  sr_trial x;
  real q[SR_DIM(SR_NQ)], v[SR_DIM(SR_NV)], a[SR_DIM(SR_NV)], s = 0;
  const int bare = m->attempt && m->correction == SR_FREE; /* a differential-algebraic form left to itself */
  const int guarded = SR_K > 0 && m->crossing != SR_RELEASE && m->rank > 0 && !bare;
  const int windowed = SR_K > 0 && m->crossing == SR_RELEASE && !m->released && m->s > m->window * m->s_ref &&
                       m->s > 2 * m->regular.tolerance;
  real longest = 1e300;
  for (;;) {
    const real left = limit - m->t, asked = sr_length(m, left), h = asked < longest ? asked : longest;
    int bridge = 0, why = 0;
    if (m->dependent && m->has_old && m->s < 0.5 * m->s_ref && sr_choose(m)) why = sr_refresh(m);
    if (why) return why;
    bridge = guarded && m->s < sr_near(m);
    if (!bridge) {
      why = sr_attempt(m, h, &x);
      if (why == SR_CALL_FAILED) return why;
      const real *end = x.y1 + SR_NV;
      if (!why && x.error <= 1) why = sr_arrive(m, m->t + h, x.y1, SR_QUASI ? m->v : end, SR_QUASI ? end : 0, q, v, a, &s);
      if (why == SR_CALL_FAILED) return why;
      const int fine = !why && x.error <= 1;
      /* not past the window in one step; one that moves the machine by a tenth of it is none */
      if (windowed && fine && h * m->rate_scale > 0.1 * m->window && sr_dips(m, h, x.weakest, s) &&
          sr_is_weak(m, &x, fine, q, s)) {
        longest = h / 2;
        continue;
      }
      bridge = guarded && sr_dips(m, h, x.weakest, fine ? s : m->s) && sr_is_singular(m, &x, fine, q, s);
      if (!bridge && !fine) {
        m->err_last = why ? 1e300 : x.error;
        const real factor = why || !(x.error < 1e30) ? 0.25 : sr_factor_of(m, x.error);
        const int stop = sr_reject(m, h, factor, why ? why : SR_TOO_SMALL);
        if (stop) return stop;
        continue;
      }
    }
    if (bridge) {
      const int code = sr_bridge_step(m, sr_span(m, h), limit);
      *watched = 1;
      if (code != SR_TOO_SMALL) {
        if (m->dense.h < 0.3 * h) m->h = 2 * m->dense.h;
        return code;
      }
      if (sr_is_fixed(m)) return code;
      const int stop = sr_reject(m, h, 0.1, SR_TOO_SMALL);
      if (stop) return stop;
      continue;
    }
    *watched = sr_is_watched(m, m->t + h);
    if (*watched && (why = sr_remember(m, h, &x, a))) return why;
    if (!sr_is_fixed(m)) {
      if (h >= m->h || h < left) m->h = h * sr_factor_of(m, x.error);
      m->err_old = x.error > 1e-4 ? x.error : 1e-4;
      m->rejected_last = 0;
    }
    sr_accept(m, h, q, v, a, s);
    if (h == left) m->t = limit;
    return 0;
  }
}

/* Go on until the end, an event, a failure, or until so many steps or rows are done. Call again to continue. */
SR_EXPORT long sarrus_run(sr_motion *m) {
  m->failed = 0;
  if (!m->started) {
    const int code = sr_start(m);
    if (code) return code;
  }
  for (long n = 0; n < m->chunk; n++) {
    if (m->pending) { /* outputs of the last step that found no room */
      if (sr_timed_rows(m, m->t)) return SR_GO_ON;
      const long code = m->pending;
      m->pending = 0;
      if (code != SR_GO_ON + 1000) return code;
    }
    if (m->t >= m->t_end) return SR_FINISHED;
    if (m->row_count + 2 >= m->row_room || m->crossing_count + 2 >= m->crossing_room) return SR_GO_ON;
    if (m->steps >= m->max_steps) return SR_TOO_MANY;
    int code = sr_sample(m), watched = 0;
    if (!code) code = sr_pass_stop(m);
    if (!code && m->crossing == SR_RELEASE && SR_K > 0) code = sr_release(m);
    if (code) return code;
    const int sampled = m->law && m->sample > 0 && m->next_sample < m->t_end - 1e-9 * m->sample;
    real limit = sampled ? m->next_sample : m->t_end;
    if (m->next_stop < m->stop_count && m->stops[m->next_stop] < limit) limit = m->stops[m->next_stop];
    code = sr_step(m, limit, &watched);
    if (code && code != SR_CROSSED) return code;
    if (watched) {
      const int event = sr_events(m);
      if (event == SR_CALL_FAILED) sr_undo(m);
      if (event) code = event;
    }
    if (code == SR_CALL_FAILED) return code;
    if (!code && !(m->rate_scale < SR_WILD)) code = SR_NOT_FINITE;
    if (m->every) {
      if (code || m->t >= m->t_end || m->steps % m->every == 0) sr_row(m, m->t, m->q, m->v, m->a);
    } else if (sr_timed_rows(m, m->t)) {
      m->pending = code ? code : SR_GO_ON + 1000;
      return SR_GO_ON;
    }
    if (code) return code;
  }
  return SR_GO_ON;
}

#endif
