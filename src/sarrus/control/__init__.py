"""Control of constrained machines: torque resolution, controllers that run as compiled code, linear tools."""
