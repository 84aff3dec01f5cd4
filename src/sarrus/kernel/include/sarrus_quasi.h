/* What integrators that carry the reduced quasi-velocities v_r in place of v ask a machine for (sheet 6):
     v = Z v_r + v_n,   A Z = 0,  Z' M Z = 1,  A v_n = a,  Z' M v_n = 0,
   so that v satisfies the constraints whatever v_r is. A step begins with a basis of its own, to which Z clings while the
   step lasts; v_r has n - rank numbers, padded with zeros to n. Implemented in sarrus_section.h. */
#ifndef SARRUS_QUASI_H
#define SARRUS_QUASI_H

#include "sarrus_types.h"

typedef struct {
  /* (t, q, setup, fresh, section, report): go to a place and find Z there, near the basis of the step's beginning, or,
     if fresh, as that basis. 0 if the directions have turned from it by nearly a right angle, which they do only at
     singular positions or in far too long a step: then the rows count as carrying nothing. */
  int (*locate)(const real *, const real *, const sr_setup *, int, void *, sr_report *);
  /* (section, v, v_r): v_r = Z' M v */
  void (*reduce)(const void *, const real *, real *);
  /* (section, v_r, moving, v): v = Z v_r, and v_n if moving */
  void (*spread)(const void *, const real *, int, real *);
  /* (t, q, v, u, setup, section, v_r', report): at the place */
  void (*rate)(const real *, const real *, const real *, const real *, const sr_setup *, const void *, real *, sr_report *);
} sr_quasi;

#endif
