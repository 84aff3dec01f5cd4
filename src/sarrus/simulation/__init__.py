"""Motion in time: integrators, events, trajectories and what proves them right."""
