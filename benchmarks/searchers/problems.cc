#include "benchmarks/searchers/problems.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "core/base/random.h"

namespace attune::benchmarks {
namespace {

using Vector = std::vector<double>;
constexpr double kPi = std::numbers::pi;

double Square(double x) { return x * x; }

// ---- definitions; the optimum is 0 at the origin, unless a comment says otherwise ---------------

double Sphere(const Vector& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return sum;
}

double Ellipsoid(const Vector& x) {  // condition 10^6
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(x.size() - 1);
    sum += std::pow(10, 6 * part) * x[i] * x[i];
  }
  return sum;
}

double Rosenbrock(const Vector& x) {  // moved: the optimum is at the origin, not at (1, 1, …)
  double sum = 0;
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    sum += 100 * Square(x[i + 1] + 1 - Square(x[i] + 1)) + Square(x[i]);
  }
  return sum;
}

double Rastrigin(const Vector& x) {
  double sum = 0;
  for (const double v : x) sum += v * v - 10 * std::cos(2 * kPi * v) + 10;
  return sum;
}

double Ackley(const Vector& x) {
  double cosines = 0;
  for (const double v : x) cosines += std::cos(2 * kPi * v);
  const auto n = static_cast<double>(x.size());
  return 20 - 20 * std::exp(-0.2 * std::sqrt(Sphere(x) / n)) + std::numbers::e -
         std::exp(cosines / n);
}

double Levy(const Vector& x) {  // moved in the same way
  const auto w = [&](size_t i) { return 1 + x[i] / 4; };
  double sum = Square(std::sin(kPi * w(0)));
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    sum += Square(w(i) - 1) * (1 + 10 * Square(std::sin(kPi * w(i) + 1)));
  }
  const double last = w(x.size() - 1);
  return sum + Square(last - 1) * (1 + Square(std::sin(2 * kPi * last)));
}

double Griewank(const Vector& x) {
  double product = 1;
  for (size_t i = 0; i < x.size(); ++i) {
    product *= std::cos(x[i] / std::sqrt(static_cast<double>(i + 1)));
  }
  return Sphere(x) / 4000 - product + 1;
}

double StyblinskiTang(const Vector& x) {  // the optimum is at -2.903534 in every dimension
  double sum = 0;
  for (const double v : x) sum += (Square(v * v) - 16 * v * v + 5 * v) / 2;
  return sum;
}

double Branin(const Vector& x) {
  return Square(x[1] - 5.1 / (4 * kPi * kPi) * x[0] * x[0] + 5 / kPi * x[0] - 6) +
         10 * (1 - 1 / (8 * kPi)) * std::cos(x[0]) + 10;
}

double Hartmann3(const Vector& x) {
  constexpr double kHeight[] = {1, 1.2, 3, 3.2};
  constexpr double kWidth[4][3] = {{3, 10, 30}, {0.1, 10, 35}, {3, 10, 30}, {0.1, 10, 35}};
  constexpr double kPlace[4][3] = {{0.3689, 0.1170, 0.2673},
                                   {0.4699, 0.4387, 0.7470},
                                   {0.1091, 0.8732, 0.5547},
                                   {0.0381, 0.5743, 0.8828}};
  double sum = 0;
  for (size_t i = 0; i < 4; ++i) {
    double exponent = 0;
    for (size_t j = 0; j < 3; ++j) exponent += kWidth[i][j] * Square(x[j] - kPlace[i][j]);
    sum -= kHeight[i] * std::exp(-exponent);
  }
  return sum;
}

double Hartmann6(const Vector& x) {
  constexpr double kHeight[] = {1, 1.2, 3, 3.2};
  constexpr double kWidth[4][6] = {{10, 3, 17, 3.5, 1.7, 8},
                                   {0.05, 10, 17, 0.1, 8, 14},
                                   {3, 3.5, 1.7, 10, 17, 8},
                                   {17, 8, 0.05, 10, 0.1, 14}};
  constexpr double kPlace[4][6] = {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                                   {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                                   {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                                   {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}};
  double sum = 0;
  for (size_t i = 0; i < 4; ++i) {
    double exponent = 0;
    for (size_t j = 0; j < 6; ++j) exponent += kWidth[i][j] * Square(x[j] - kPlace[i][j]);
    sum -= kHeight[i] * std::exp(-exponent);
  }
  return sum;
}

// ---- instances ----------------------------------------------------------------------------------

std::string Axis(size_t i) { return "x" + std::to_string(i); }

SearchSpace Box(size_t dimensions, double min, double max) {
  std::vector<Parameter> parameters;
  for (size_t i = 0; i < dimensions; ++i) {
    parameters.push_back({Axis(i), FloatDomain{.min = min, .max = max}, {}});
  }
  return SearchSpace(std::move(parameters));
}

Vector Coordinates(const Config& config) {
  Vector x;
  for (const auto& [name, value] : config.entries()) x.push_back(std::get<double>(value));
  return x;
}

// Orthonormal rows, by the Gram-Schmidt process on normal draws.
std::vector<Vector> Rotation(size_t n, RandomStream& random) {
  std::vector<Vector> rows;
  while (rows.size() < n) {
    Vector row(n);
    for (double& v : row) {
      v = std::sqrt(-2 * std::log(1 - random.Uniform())) * std::cos(2 * kPi * random.Uniform());
    }
    for (const Vector& other : rows) {
      double dot = 0;
      for (size_t i = 0; i < n; ++i) dot += row[i] * other[i];
      for (size_t i = 0; i < n; ++i) row[i] -= dot * other[i];
    }
    const double length = std::sqrt(Sphere(row));
    if (length < 1e-6) continue;
    for (double& v : row) v /= length;
    rows.push_back(std::move(row));
  }
  return rows;
}

using Function = double (*)(const Vector&);

// The function on [-5, 5]^n, with its optimum moved to a random point in [-4, 4]^n.
Problem Shifted(const char* name, Function function, size_t n, bool rotate, uint64_t instance) {
  RandomStream random(instance, TrialNumber(static_cast<uint32_t>(n)), name);
  Vector best(n);
  for (double& v : best) v = random.Uniform(-4, 4);
  const auto rows = rotate ? Rotation(n, random) : std::vector<Vector>{};
  const auto loss = [=](const Config& config) {
    Vector x = Coordinates(config);
    for (size_t i = 0; i < n; ++i) x[i] -= best[i];
    if (rows.empty()) return function(x);
    Vector turned(n, 0);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) turned[i] += rows[i][j] * x[j];
    }
    return function(turned);
  };
  return {name, static_cast<int>(n), Box(n, -5, 5), loss, 0};
}

Problem Unshifted(const char* name, Function function, SearchSpace space, double optimum) {
  return {name, static_cast<int>(space.parameters().size()), std::move(space),
          [function](const Config& config) { return function(Coordinates(config)); }, optimum};
}

// Two reals and two integers, one of each on a log scale, and two lists. The instance decides which
// values are best.
Problem Mixed(uint64_t instance) {
  RandomStream random(instance, TrialNumber(0), "mixed");
  const double x = random.Uniform(0.1, 0.9);
  const double lr = random.Uniform(-5, -1);
  const int64_t layers = random.Integer(2, 11);
  const double width = random.Uniform(4, 9);
  const int64_t activation = random.Integer(0, 4);
  const int64_t optimizer = random.Integer(0, 2);
  SearchSpace space({{"x", FloatDomain{.min = 0, .max = 1}},
                     {"lr", FloatDomain{.min = 1e-6, .max = 1, .scale = Scale::kLog}},
                     {"layers", IntDomain{.min = 1, .max = 12}},
                     {"width", IntDomain{.min = 8, .max = 1024, .scale = Scale::kLog}},
                     {"activation", CategoricalDomain{{int64_t{0}, int64_t{1}, int64_t{2},
                                                       int64_t{3}, int64_t{4}}}},
                     {"optimizer", CategoricalDomain{{int64_t{0}, int64_t{1}, int64_t{2}}}}});
  const auto loss = [=](const Config& config) {
    const auto real = [&](const char* name) { return std::get<double>(*config.Find(name)); };
    const auto whole = [&](const char* name) { return std::get<int64_t>(*config.Find(name)); };
    const int64_t nearest = std::llround(std::exp2(width));
    const double turn = static_cast<double>((whole("activation") - activation + 5) % 5);
    return Square(real("x") - x) + Square((std::log10(real("lr")) - lr) / 6) +
           Square(static_cast<double>(whole("layers") - layers) / 11) +
           Square(std::log2(static_cast<double>(whole("width")) / static_cast<double>(nearest)) /
                  7) +
           0.05 * turn + (whole("optimizer") == optimizer ? 0 : 0.2);
  };
  return {"mixed", 6, std::move(space), loss, 0};
}

// Three kinds of model. Each kind has two parameters, and all share one. One kind is the best, but
// its loss rises faster away from its optimum.
Problem Conditional(uint64_t instance) {
  RandomStream random(instance, TrialNumber(0), "conditional");
  const int64_t best = random.Integer(0, 2);
  Vector at(7);
  for (double& v : at) v = random.Uniform(0.1, 0.9);
  std::vector<Parameter> parameters{
      {"kind", CategoricalDomain{{int64_t{0}, int64_t{1}, int64_t{2}}}},
      {"shared", FloatDomain{.min = 0, .max = 1}}};
  for (int64_t kind = 0; kind < 3; ++kind) {
    for (const char* part : {"a", "b"}) {
      parameters.push_back({part + std::to_string(kind),
                            FloatDomain{.min = 0, .max = 1},
                            {{.parent = "kind", .any_of = {kind}}}});
    }
  }
  const auto loss = [=](const Config& config) {
    const int64_t kind = std::get<int64_t>(*config.Find("kind"));
    const auto real = [&](const std::string& name) { return std::get<double>(*config.Find(name)); };
    const auto index = static_cast<size_t>(2 * kind);
    const double floor = kind == best ? 0 : 0.1;
    const double steep = kind == best ? 4 : 1;
    return floor + Square(real("shared") - at[6]) +
           steep * (Square(real("a" + std::to_string(kind)) - at[index]) +
                    Square(real("b" + std::to_string(kind)) - at[index + 1]));
  };
  return {"conditional", 4, SearchSpace(std::move(parameters)), loss, 0};
}

}  // namespace

std::vector<Problem> StandardProblems(uint64_t instance) {
  std::vector<Problem> problems;
  for (const size_t n : {size_t{3}, size_t{5}, size_t{10}}) {
    problems.push_back(Shifted("sphere", Sphere, n, false, instance));
    problems.push_back(Shifted("ellipsoid", Ellipsoid, n, true, instance));
    problems.push_back(Shifted("rosenbrock", Rosenbrock, n, false, instance));
    problems.push_back(Shifted("rastrigin", Rastrigin, n, true, instance));
    problems.push_back(Shifted("ackley", Ackley, n, false, instance));
    problems.push_back(Shifted("levy", Levy, n, true, instance));
    problems.push_back(Shifted("griewank", Griewank, n, true, instance));
    problems.push_back(Unshifted("styblinski_tang", StyblinskiTang, Box(n, -5, 5),
                                 -39.16616570377142 * static_cast<double>(n)));
  }
  problems.push_back(Unshifted("branin", Branin,
                               SearchSpace({{"x0", FloatDomain{.min = -5, .max = 10}},
                                            {"x1", FloatDomain{.min = 0, .max = 15}}}),
                               0.39788735772973816));
  problems.push_back(Unshifted("hartmann3", Hartmann3, Box(3, 0, 1), -3.8627821478));
  problems.push_back(Unshifted("hartmann6", Hartmann6, Box(6, 0, 1), -3.3223680115));
  problems.push_back(Mixed(instance));
  problems.push_back(Conditional(instance));
  return problems;
}

}  // namespace attune::benchmarks
