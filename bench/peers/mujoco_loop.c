/* Timing loop around MuJoCo: sets the state, calls, next; no Python between two evaluations.
   `call` is mj_forward or mj_step; `size` holds nq and nv; source arrays have one row for each state. */
#include <string.h>

typedef void (*stage)(const void *model, void *data);

void mujoco_run(stage call, const void *model, void *data, const long *size, double *const *target,
                const double *const *source, long states, long count, const double *result, double *out) {
  const long width[4] = {size[0], size[1], size[1], size[1]}; /* qpos, qvel, applied forces, warm start */
  for (long i = 0; i < count; i++) {
    const long k = i % states;
    for (int j = 0; j < 4; j++) memcpy(target[j], source[j] + k * width[j], width[j] * sizeof(double));
    call(model, data);
    if (out) memcpy(out + i * size[1], result, size[1] * sizeof(double));
  }
}
