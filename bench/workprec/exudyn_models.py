"""A problem as a system of Exudyn, in joint coordinates or as bodies in the plane, with sensors of its coordinates."""

from __future__ import annotations

import exudyn as exu
import exudyn.itemInterface as items
import numpy as np

from bench.workprec.trees import GROUND, Link, Tree, Z

KINDS = (exu.OutputVariableType.Coordinates, exu.OutputVariableType.Coordinates_t)


def signs(tree: Tree) -> np.ndarray:
    """-1 for joints whose axis points along -x, -y or -z: Exudyn's point along the positive axes."""
    return np.array([float(sum(x.axis)) for x in tree.links])


def in_joints(tree: Tree) -> tuple[exu.MainSystem, list]:
    """A kinematic tree with closures as spherical joints, and its sensors of coordinates and velocities."""
    way = signs(tree)
    mbs = exu.SystemContainer().AddSystem()
    n = len(tree.links)
    node = mbs.AddNode(
        items.NodeGenericODE2(
            referenceCoordinates=[0.0] * n, initialCoordinates=list(way * tree.q0),
            initialCoordinates_t=list(way * tree.v0), numberOfODE2Coordinates=n,
        )
    )  # fmt: skip
    forces = np.zeros(n)
    for k, torque in tree.torques.items():
        forces[k] = way[k] * torque
    body = mbs.AddObject(
        items.ObjectKinematicTree(
            nodeNumber=node, gravity=list(tree.gravity), jointTypes=[_joint(x) for x in tree.links],
            linkParents=[x.parent for x in tree.links], jointForceVector=list(forces),
            jointTransformations=exu.Matrix3DList([np.eye(3)] * n),
            jointOffsets=exu.Vector3DList([np.array(x.at, dtype=float) for x in tree.links]),
            linkInertiasCOM=exu.Matrix3DList([np.array(x.inertia, dtype=float) for x in tree.links]),
            linkCOMs=exu.Vector3DList([np.array(x.com, dtype=float) for x in tree.links]),
            linkMasses=[x.mass for x in tree.links],
        )
    )  # fmt: skip
    ground = mbs.AddObject(items.ObjectGround())

    def marker(link: int, at: np.ndarray) -> int:
        if link == GROUND:
            return mbs.AddMarker(items.MarkerBodyRigid(bodyNumber=ground, localPosition=list(at)))
        return mbs.AddMarker(items.MarkerKinematicTreeRigid(objectNumber=body, linkNumber=link, localPosition=list(at)))

    for x in tree.loops:
        ends = [marker(x.a, x.at_a), marker(x.b, x.at_b)]
        axes = [int(k in x.axes) for k in range(3)]
        mbs.AddObject(items.ObjectJointSpherical(markerNumbers=ends, constrainedAxes=axes))
    for s in tree.springs:
        _spring(mbs, s, [marker(s.a, s.at_a), marker(s.b, s.at_b)])
    return mbs, [_sensor(mbs, node, kind) for kind in KINDS]


def in_bodies(tree: Tree) -> tuple[exu.MainSystem, list]:
    """Bodies that move in the plane, every hinge a constraint; two sensors (position, velocity) for each body."""
    mbs = exu.SystemContainer().AddSystem()
    ground = mbs.AddObject(items.ObjectGround())
    bodies, nodes = [], []
    for link, (centre, angle, velocity, rate) in zip(tree.links, planar_poses(tree), strict=True):
        node = mbs.AddNode(
            items.NodeRigidBody2D(
                referenceCoordinates=[0.0] * 3, initialCoordinates=[*centre[:2], angle],
                initialVelocities=[*velocity[:2], rate],
            )
        )  # fmt: skip
        body = mbs.AddObject(items.ObjectRigidBody2D(mass=link.mass, inertia=link.inertia[2, 2], nodeNumber=node))
        weight = mbs.AddMarker(items.MarkerBodyMass(bodyNumber=body))
        mbs.AddLoad(items.LoadMassProportional(markerNumber=weight, loadVector=list(tree.gravity)))
        bodies.append(body)
        nodes.append(node)

    def marker(link: int, at: np.ndarray) -> int:
        body, place = (ground, at) if link == GROUND else (bodies[link], at - tree.links[link].com)
        return mbs.AddMarker(items.MarkerBodyPosition(bodyNumber=body, localPosition=list(place)))

    def hinge(a: int, at_a: np.ndarray, b: int, at_b: np.ndarray) -> None:
        mbs.AddObject(items.ObjectJointRevolute2D(markerNumbers=[marker(a, at_a), marker(b, at_b)]))

    for k, link in enumerate(tree.links):
        hinge(link.parent, link.at, k, np.zeros(3))
    for x in tree.loops:
        if x.axes == (0, 1):
            hinge(x.a, x.at_a, x.b, x.at_b)
        else:
            ends, axes = [marker(x.a, x.at_a), marker(x.b, x.at_b)], [int(k in x.axes) for k in range(3)]
            mbs.AddObject(items.ObjectJointSpherical(markerNumbers=ends, constrainedAxes=axes))
    for s in tree.springs:
        _spring(mbs, s, [marker(s.a, s.at_a), marker(s.b, s.at_b)])
    for k, torque in tree.torques.items():
        end = mbs.AddMarker(items.MarkerBodyRigid(bodyNumber=bodies[k]))
        mbs.AddLoad(items.LoadTorqueVector(markerNumber=end, loadVector=[0.0, 0.0, torque]))
    return mbs, [[_sensor(mbs, node, kind) for node in nodes] for kind in KINDS]


def planar_poses(tree: Tree) -> list[tuple[np.ndarray, float, np.ndarray, float]]:
    """Centre of mass, angle, velocity of the centre and angular velocity of every link at the start."""
    hinges, out = [], []
    for link in tree.links:
        p, angle, v, rate = (0 * Z, 0.0, 0 * Z, 0.0) if link.parent == GROUND else hinges[link.parent]
        arm = _turned(angle, link.at)
        p, v = p + arm, v + rate * np.cross(Z, arm)
        angle, rate = angle + link.q0, rate + link.v0
        hinges.append((p, angle, v, rate))
        arm = _turned(angle, link.com)
        out.append((p + arm, angle, v + rate * np.cross(Z, arm), rate))
    return out


def relative(tree: Tree, angles: np.ndarray) -> np.ndarray:
    """Joint angles (or rates) from those of the bodies, columns in the order of the links."""
    columns = [angles[:, k] - (angles[:, x.parent] if x.parent != GROUND else 0.0) for k, x in enumerate(tree.links)]
    return np.stack(columns, axis=1)


def _turned(angle: float, x: np.ndarray) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c * x[0] - s * x[1], s * x[0] + c * x[1], x[2]])


def _spring(mbs, s, ends: list[int]) -> None:
    mbs.AddObject(
        items.ObjectConnectorSpringDamper(
            markerNumbers=ends, referenceLength=s.length, stiffness=s.stiffness, damping=s.damping
        )
    )


def _sensor(mbs, node: int, kind) -> int:
    return mbs.AddSensor(
        items.SensorNode(nodeNumber=node, outputVariableType=kind, storeInternal=True, writeToFile=False)
    )


def _joint(link: Link):
    axis = "XYZ"[int(np.argmax(np.abs(link.axis)))]
    return getattr(exu.JointType, ("Revolute" if link.kind == "R" else "Prismatic") + axis)
