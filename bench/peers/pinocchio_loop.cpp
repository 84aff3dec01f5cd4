// Timing loop around Pinocchio, compiled at bench time against the headers of the installed wheel: no Python between
// two evaluations. Everything comes in as one text (see peers/pinocchio_machine.py) and arrays of numbers.
#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/constrained-dynamics.hpp>
#include <pinocchio/algorithm/loop-constrained-aba.hpp>
#include <pinocchio/algorithm/proximal.hpp>

#include <sstream>
#include <string>
#include <vector>

namespace pin = pinocchio;
using Constraints = std::vector<pin::RigidConstraintModel>;
using ConstraintDatas = std::vector<pin::RigidConstraintData>;

namespace {

struct Machine {
  pin::Model model;
  Constraints constraints;
  ConstraintDatas datas;
  pin::Data data;
  pin::ProximalSettings settings;
  int method = 0;  // 0: constraintDynamics, 1: lcaba
  std::vector<Eigen::VectorXd> q, v, tau;
};

Eigen::VectorXd numbers(std::istream &in, int count) {
  Eigen::VectorXd out(count);
  for (int i = 0; i < count; ++i) in >> out[i];
  return out;
}

pin::SE3 placement(std::istream &in) {
  const Eigen::VectorXd x = numbers(in, 12);
  pin::SE3 out;
  for (int i = 0; i < 9; ++i) out.rotation()(i / 3, i % 3) = x[i];
  out.translation() = x.tail<3>();
  return out;
}

pin::JointModel joint(const std::string &kind) {
  if (kind == "RZ") return pin::JointModelRZ();
  if (kind == "PZ") return pin::JointModelPZ();
  if (kind == "RX") return pin::JointModelRX();
  if (kind == "RY") return pin::JointModelRY();
  if (kind == "planar") return pin::JointModelPlanar();
  if (kind == "spherical") return pin::JointModelSpherical();
  if (kind == "free") return pin::JointModelFreeFlyer();
  throw std::invalid_argument("unknown joint kind " + kind);
}

void read(std::istream &in, Machine &m) {
  int joints, bodies, loops;
  m.model.gravity.linear() = numbers(in, 3);
  in >> joints;
  for (int i = 0; i < joints; ++i) {
    std::string kind;
    pin::JointIndex parent;
    in >> kind >> parent;
    m.model.addJoint(parent, joint(kind), placement(in), "joint" + std::to_string(i));
  }
  in >> bodies;
  for (int i = 0; i < bodies; ++i) {
    pin::JointIndex at;
    in >> at;
    const Eigen::VectorXd x = numbers(in, 13);
    Eigen::Matrix3d inertia;
    for (int k = 0; k < 9; ++k) inertia(k / 3, k % 3) = x[4 + k];
    m.model.appendBodyToJoint(at, pin::Inertia(x[0], x.segment<3>(1), inertia), placement(in));
  }
  in >> loops;
  for (int i = 0; i < loops; ++i) {
    pin::JointIndex a, b;
    in >> a;
    const pin::SE3 at_a = placement(in);
    in >> b;
    const pin::SE3 at_b = placement(in);
    m.constraints.emplace_back(pin::CONTACT_3D, m.model, a, at_a, b, at_b, pin::LOCAL);
  }
}

const Eigen::VectorXd &evaluate(Machine &m, std::size_t k) {
  if (m.method == 1)
    return pin::lcaba(m.model, m.data, m.q[k], m.v[k], m.tau[k], m.constraints, m.datas, m.settings);
  return pin::constraintDynamics(m.model, m.data, m.q[k], m.v[k], m.tau[k], m.constraints, m.datas, m.settings);
}

}  // namespace

extern "C" {
#define EXPORT __attribute__((visibility("default")))

EXPORT void *machine_create(const char *text, int method, int states, const double *q, const double *v,
                            const double *tau) {
  Machine *m = new Machine;
  std::istringstream in(text);
  read(in, *m);
  m->method = method;
  if (method == 1) pin::computeJointMinimalOrdering(m->model, m->data = pin::Data(m->model), m->constraints);
  else m->data = pin::Data(m->model);
  for (const auto &c : m->constraints) m->datas.emplace_back(c);
  if (method == 0) pin::initConstraintDynamics(m->model, m->data, m->constraints, m->datas);
  const int nq = m->model.nq, nv = m->model.nv;
  for (int k = 0; k < states; ++k) {
    m->q.push_back(Eigen::Map<const Eigen::VectorXd>(q + k * nq, nq));
    m->v.push_back(Eigen::Map<const Eigen::VectorXd>(v + k * nv, nv));
    m->tau.push_back(Eigen::Map<const Eigen::VectorXd>(tau + k * nv, nv));
  }
  return m;
}

EXPORT void machine_settings(void *handle, double accuracy, double mu, int iterations) {
  static_cast<Machine *>(handle)->settings = pin::ProximalSettings(accuracy, accuracy, mu, iterations);
}

EXPORT void machine_accelerations(void *handle, double *out) {
  Machine &m = *static_cast<Machine *>(handle);
  for (std::size_t k = 0; k < m.q.size(); ++k)
    Eigen::Map<Eigen::VectorXd>(out + k * m.model.nv, m.model.nv) = evaluate(m, k);
}

EXPORT double machine_run(void *handle, long count) {
  Machine &m = *static_cast<Machine *>(handle);
  double sum = 0;  // read every result, so that nothing can be left out
  for (long i = 0; i < count; ++i) sum += evaluate(m, i % m.q.size())[0];
  return sum;
}

EXPORT void machine_delete(void *handle) { delete static_cast<Machine *>(handle); }
}
