/* The number type and the qualifiers that make one source valid as C99 and as CUDA device code. */
#ifndef SARRUS_REAL_H
#define SARRUS_REAL_H

#ifdef __CUDACC__
#define SR_FN __device__ static inline
#define SR_TABLE __device__ static const
#define SR_RESTRICT __restrict__
#else
#include <math.h>
#define SR_FN static inline
#define SR_TABLE static const
#define SR_RESTRICT restrict
#endif

#ifdef SARRUS_FLOAT
typedef float real;
#define SR_MATH(name) name##f
#else
typedef double real;
#define SR_MATH(name) name
#endif

#include "sarrus_trig.h"

#endif
