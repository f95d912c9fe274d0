// Block-coordinate ascent on the dual of planes under the losses of many examples.
//
//   min_v  (λ/2) ‖v − z‖² + Σ_i max(0, max_{k of i} b_k + ⟨a_k, v⟩)
//   dual:  α_k >= 0, Σ_{k of i} α_k <= 1,   v = z − (1/λ) Σ_k α_k a_k
//
// A visit to example i maximises the dual in its own α, nearly: with the slopes
// g_k = b_k + ⟨a_k, v⟩ and the products G_kl = ⟨a_k, a_l⟩ of its planes, the plane 0 among them (it has
// what is left of the 1), mass moves from the lowest plane d that has some to the highest one u,
//
//   δ = min(α_d, λ (g_u − g_d) / ‖a_u − a_d‖²),   g_k ← g_k − (δ/λ) (G_ku − G_kd),
//
// until g_u − g_d is kEnough of what it was, or kMoves times the number of planes. Then v changes once.
// Planes are sparse rows, those of an example one after another.
//
// References: Platt (1998), Sequential minimal optimization; Chang and Yih (2013), Dual coordinate
// descent algorithms for efficient large margin structured prediction.
#include <cmath>
#include <cstdint>
#include <vector>

#include "binding.hpp"
#include "patience.hpp"

namespace chordal {
namespace {

constexpr double kEnough = 0.05;
constexpr double kEqual = 1e-13;  // leads below it, relatively, and masses are rounding
constexpr std::size_t kMoves = 2;

struct Planes {
    const std::int64_t* example_offsets;  // [examples + 1] into planes
    const std::int64_t* row_offsets;      // [planes + 1] into cells
    const std::int32_t* cells;
    const double* values;
    const double* offsets;                // [planes] b

    double product(std::int64_t k, const double* v) const {
        double sum = 0.0;
        for (auto e = row_offsets[k]; e < row_offsets[k + 1]; ++e) sum += values[e] * v[cells[e]];
        return sum;
    }
    void add(std::int64_t k, double scale, double* v) const {
        for (auto e = row_offsets[k]; e < row_offsets[k + 1]; ++e) v[cells[e]] += scale * values[e];
    }
};

class Ascent {
public:
    Ascent(const Planes& planes, const double* gram, const std::int64_t* gram_offsets,
           double lambda, double* alpha, double* v)
        : p_(planes), lambda_(lambda), gram_(gram), gram_offsets_(gram_offsets), alpha_(alpha), v_(v) {}

    // Returns about how many additions it took.
    std::size_t visit(std::int64_t example) {
        first_ = p_.example_offsets[example];
        n_ = static_cast<std::size_t>(p_.example_offsets[example + 1] - first_);
        if (n_ == 0) return 1;
        G_ = gram_ + gram_offsets_[example];
        load();
        enough_ = 0.0;
        for (std::size_t moves = 0; moves < kMoves * (n_ + 1) && move(); ++moves) {
        }
        for (std::size_t k = 0; k < n_; ++k) {
            const auto plane = first_ + static_cast<std::int64_t>(k);
            const double change = mass_[k] - alpha_[plane];
            if (change == 0.0) continue;
            alpha_[plane] = mass_[k];
            p_.add(plane, -change / lambda_, v_);
        }
        return static_cast<std::size_t>(2 * (p_.row_offsets[first_ + n_] - p_.row_offsets[first_])) +
               kMoves * n_;
    }

private:
    // Slopes and masses of the example's planes; the last is the plane 0.
    void load() {
        slope_.assign(n_ + 1, 0.0);
        mass_.assign(n_ + 1, 0.0);
        double left = 1.0;
        for (std::size_t k = 0; k < n_; ++k) {
            const auto plane = first_ + static_cast<std::int64_t>(k);
            slope_[k] = p_.offsets[plane] + p_.product(plane, v_);
            mass_[k] = alpha_[plane];
            left -= mass_[k];
        }
        mass_[n_] = left > kEqual ? left : 0.0;  // else each visit would move the same rounding error
    }
    double gram(std::size_t k, std::size_t l) const {
        return k < n_ && l < n_ ? G_[k * n_ + l] : 0.0;
    }
    // False where nothing is left to gain.
    bool move() {
        std::size_t up = 0, down = n_ + 1;
        for (std::size_t k = 0; k <= n_; ++k) {
            if (slope_[k] > slope_[up]) up = k;
            if (mass_[k] > 0.0 && (down > n_ || slope_[k] < slope_[down])) down = k;
        }
        if (down > n_ || up == down) return false;
        const double lead = slope_[up] - slope_[down];
        if (!(lead > kEqual * (std::fabs(slope_[up]) + std::fabs(slope_[down])))) return false;
        if (lead <= enough_) return false;
        if (enough_ == 0.0) enough_ = kEnough * lead;
        const double square = gram(up, up) + gram(down, down) - 2.0 * gram(up, down);
        double step = mass_[down];
        if (lambda_ * lead < step * square) step = lambda_ * lead / square;
        mass_[up] += step;
        mass_[down] = step < mass_[down] ? mass_[down] - step : 0.0;
        for (std::size_t k = 0; k < n_; ++k)
            slope_[k] -= step / lambda_ * (gram(k, up) - gram(k, down));
        return true;
    }

    Planes p_;
    double lambda_;
    const double* gram_;
    const std::int64_t* gram_offsets_;
    double* alpha_;
    double* v_;
    double enough_ = 0.0;
    std::int64_t first_ = 0;
    std::size_t n_ = 0;
    const double* G_ = nullptr;
    std::vector<double> slope_, mass_;
};

// The products of all planes of each example, one matrix after another.
void products(const Planes& p, std::size_t examples, std::vector<double>& row, double* gram) {
    CHORDAL_ISA::Patience patience(interrupted);
    for (std::size_t i = 0; i < examples; ++i) {
        const auto first = p.example_offsets[i], last = p.example_offsets[i + 1];
        const auto n = last - first;
        for (auto k = first; k < last; ++k) {
            p.add(k, 1.0, row.data());
            for (auto l = first; l <= k; ++l) {
                gram[(k - first) * n + l - first] = gram[(l - first) * n + k - first] =
                    p.product(l, row.data());
                patience.spend(static_cast<std::size_t>(p.row_offsets[l + 1] - p.row_offsets[l]));
            }
            for (auto e = p.row_offsets[k]; e < p.row_offsets[k + 1]; ++e) row[p.cells[e]] = 0.0;
        }
        gram += n * n;
    }
}

// The planes of a program, and their products.
struct PlaneArrays {
    Input<std::int64_t> example_offsets, row_offsets;
    Input<std::int32_t> cells;
    Input<double> values, offsets;
    std::size_t weights;
    std::vector<std::int64_t> gram_offsets;
    std::vector<double> gram;

    PlaneArrays(Input<std::int64_t> example_offsets, Input<std::int64_t> row_offsets,
                Input<std::int32_t> cells, Input<double> values, Input<double> offsets,
                std::size_t weights)
        : example_offsets(example_offsets), row_offsets(row_offsets), cells(cells), values(values),
          offsets(offsets), weights(weights), gram_offsets{0} {
        const auto last = [](const Input<std::int64_t>& x) {
            return x.size() ? static_cast<std::size_t>(x.data()[x.size() - 1]) : SIZE_MAX;
        };
        require(last(example_offsets) == offsets.size() &&
                    row_offsets.size() == offsets.size() + 1 &&
                    last(row_offsets) == cells.size() && values.size() == cells.size(),
                "planes do not fit together");
        GilReleased release;
        const std::size_t examples = example_offsets.size() - 1;
        for (std::size_t i = 0; i < examples; ++i) {
            const auto n = example_offsets.data()[i + 1] - example_offsets.data()[i];
            gram_offsets.push_back(gram_offsets.back() + n * n);
        }
        gram.resize(static_cast<std::size_t>(gram_offsets.back()));
        std::vector<double> row(weights, 0.0);
        products(view(), examples, row, gram.data());
    }
    Planes view() const {
        return {example_offsets.data(), row_offsets.data(), cells.data(), values.data(),
                offsets.data()};
    }
};

void run_ascent(const PlaneArrays& self, double l2, Input<std::int64_t> order,
                Output<double> alpha, Output<double> v) {
    require(alpha.size() == self.offsets.size() && v.size() == self.weights,
            "arrays do not fit the planes");
    GilReleased release;
    const Planes planes = self.view();
    Ascent ascent(planes, self.gram.data(), self.gram_offsets.data(), l2, alpha.data(), v.data());
    CHORDAL_ISA::Patience patience(interrupted);
    for (std::size_t k = 0; k < order.size(); ++k) patience.spend(ascent.visit(order.data()[k]));
}

}  // namespace

static const Binding binding([](nb::module_& m) {
    nb::class_<PlaneArrays>(m, "Planes", "Planes under the losses of examples, as sparse rows.")
        .def(nb::init<Input<std::int64_t>, Input<std::int64_t>, Input<std::int32_t>, Input<double>,
                      Input<double>, std::size_t>(),
             nb::kw_only(), nb::arg("example_offsets"), nb::arg("row_offsets"), nb::arg("cells"),
             nb::arg("values"), nb::arg("offsets"), nb::arg("n_weights"))
        .def("ascend", &run_ascent, nb::arg("l2"), nb::arg("order"), nb::kw_only(),
             nb::arg("alpha"), nb::arg("v"));
});

}  // namespace chordal
