"""The compiled machine: accelerations, forces, rank and assembly."""
