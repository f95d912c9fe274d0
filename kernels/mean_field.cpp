// Naive mean field: independent variables q(y) = Π_v q_v(y_v), as near to the model as they can be.
//
//   F(q) = Σ_v E[θ_v] + Σ_c E[θ_c] + Σ_v H(q_v) <= log Z
//   q_v(x) ∝ exp s_v(x),   s_v(x) = θ_v(x) + Σ_{c ∋ v} E_{q_{c \ v}}[θ_c(x, ·)]
//
// One variable at a time, F never falls. Expectations go over labels with q > 0 only: a score of -inf
// counts where it has a chance, and excludes the label there. From a start whose labels all fit each
// other, they do so always. Shares below kTiny are set to 0, so that products of them do not underflow
// to what they are not.
//
// Also here: expectations over given cliques, and products over them, for the structured kind.
//
// Reference: Jordan, Ghahramani, Jaakkola and Saul (1999), An introduction to variational methods for
// graphical models.
#include <nanobind/stl/optional.h>

#include <optional>

#include "factors.hpp"
#include "frame_binding.hpp"

namespace chordal::CHORDAL_ISA {
namespace {

constexpr double kTiny = 1e-60;

class MeanField {
public:
    MeanField(const Scores& g, double* q) : g_(g), q_(q) {}
    FactorExample ex;
    Listening listening;

    void open(std::size_t example) {
        ex.open(g_, example);
        score_.resize(padded_of(ex.most_labels));
    }
    double* score() { return score_.data(); }
    const double* q(Int v) const { return q_ + ex.first_state(v); }

    // s_v, over the cliques whose flag is set (all without flags).
    void expect(Int v, const std::uint8_t* flags) {
        const double* unary = g_.unary + ex.first_state(v);
        for (std::size_t x = 0; x < ex.labels(v); ++x) score_[x] = unary[x];
        for (Int slot = ex.slots(v); slot < ex.slots(v) + ex.degree(v); ++slot) {
            const Int p = ex.place_of(slot), c = ex.clique(p);
            if (flags && !flags[c]) continue;
            const double* table = cells(c);
            if (ex.order_of(c) == 2)
                add_edge(c, p, table);
            else
                add_axis(ex.places_of(c), ex.places_of(c + 1), p, 0, 1.0, table);
        }
    }
    // Sets q_v from s_v; returns the largest step, or a negative number if no label is left.
    double update(Int v) {
        expect(v, nullptr);
        const std::size_t n = ex.labels(v);
        double highest = -kInfinity, total = 0.0, furthest = 0.0;
        for (std::size_t x = 0; x < n; ++x) highest = score_[x] > highest ? score_[x] : highest;
        if (highest == -kInfinity) return -1.0;
        for (std::size_t x = 0; x < n; ++x) {
            score_[x] = std::exp(score_[x] - highest);
            if (score_[x] < kTiny) score_[x] = 0.0;
            total += score_[x];
        }
        double* q = q_ + ex.first_state(v);
        for (std::size_t x = 0; x < n; ++x) {
            const double share = score_[x] / total, step = std::abs(share - q[x]);
            furthest = step > furthest ? step : furthest;
            q[x] = share;
        }
        return furthest;
    }
    // E[θ_c].
    double energy(Int c) const {
        const double* table = cells(c);
        return expectation(ex.places_of(c), ex.places_of(c + 1), 1.0, table);
    }
    double bound() {
        double value = 0.0;
        for (Int v = 0; v < ex.variables; ++v) {
            listening.spend(16 * ex.labels(v));
            const double* unary = g_.unary + ex.first_state(v);
            for (std::size_t x = 0; x < ex.labels(v); ++x)
                if (q(v)[x] > 0.0) value += q(v)[x] * (unary[x] - std::log(q(v)[x]));
        }
        for (Int c = 0; c < ex.cliques; ++c) {
            value += energy(c);
            listening.spend(size_of(c));
        }
        return value;
    }
    // About what it takes to go through a clique's table.
    std::size_t size_of(Int c) const {
        const auto t = ex.table(c);
        return 4 * static_cast<std::size_t>(g_.table_offsets[t + 1] - g_.table_offsets[t]) + 16;
    }
    // Adds weight · Π q to the clique's cells.
    void add_products(Int c, double weight, double* to) const {
        multiply(ex.places_of(c), ex.places_of(c + 1), weight, to);
    }

private:
    const double* cells(Int c) const { return g_.tables + g_.table_offsets[ex.table(c)]; }

    void add_edge(Int c, Int p, const double* table) {
        const Int first = ex.places_of(c);
        const Int a = ex.variable(first), b = ex.variable(first + 1);
        const std::size_t rows = ex.labels(a), columns = ex.labels(b);
        if (p != first) {
            for (std::size_t i = 0; i < rows; ++i)
                if (const double share = q(a)[i]; share > 0.0)
                    for (std::size_t j = 0; j < columns; ++j) score_[j] += share * table[i * columns + j];
            return;
        }
        for (std::size_t j = 0; j < columns; ++j)
            if (const double share = q(b)[j]; share > 0.0)
                for (std::size_t i = 0; i < rows; ++i) score_[i] += share * table[i * columns + j];
    }
    // The axes from place r on: `label` is that of place p once it has been passed.
    void add_axis(Int r, Int end, Int p, std::size_t label, double share, const double*& table) {
        if (r == end) {
            if (share > 0.0) score_[label] += share * *table;
            ++table;
            return;
        }
        const Int u = ex.variable(r);
        for (std::size_t x = 0; x < ex.labels(u); ++x)
            add_axis(r + 1, end, p, r == p ? x : label, r == p ? share : share * q(u)[x], table);
    }
    double expectation(Int r, Int end, double share, const double*& table) const {
        if (r == end) {
            const double cell = *table++;
            return share > 0.0 ? share * cell : 0.0;
        }
        const Int u = ex.variable(r);
        double value = 0.0;
        for (std::size_t x = 0; x < ex.labels(u); ++x)
            value += expectation(r + 1, end, share * q(u)[x], table);
        return value;
    }
    void multiply(Int r, Int end, double share, double*& to) const {
        if (r == end) {
            *to++ += share;
            return;
        }
        const Int u = ex.variable(r);
        for (std::size_t x = 0; x < ex.labels(u); ++x) multiply(r + 1, end, share * q(u)[x], to);
    }

    const Scores& g_;
    double* q_;
    Scratch score_;
};

}  // namespace
}  // namespace chordal::CHORDAL_ISA

namespace chordal {

using CHORDAL_ISA::Int;
using CHORDAL_ISA::Interruption;
using CHORDAL_ISA::kInfinity;
using CHORDAL_ISA::MeanField;

// Sweeps until no share moves by more than the tolerance.
static void ascend(MeanField& field, double tolerance, std::int64_t most, Interruption& patience,
                   std::int64_t& iterations, double& change, double& bound) {
    iterations = 0;
    change = kInfinity;
    while (iterations < most && !patience.over()) {
        change = 0.0;
        for (Int v = 0; v < field.ex.variables && !patience.over(); ++v) {
            const double step = field.update(v);
            if (step < 0.0) {
                bound = -kInfinity;
                return;
            }
            change = step > change ? step : change;
            patience.now((16 + field.ex.labels(v) * field.ex.labels(v)) * static_cast<std::size_t>(1 + field.ex.degree(v)));
        }
        ++iterations;
        if (change <= tolerance) break;
    }
    if (!patience.stopped) bound = field.bound();
}

static void expect_all(const Scores& g, double* q, const std::uint8_t* flags, double* out) {
    const GilReleased release;
    MeanField field(g, q);
    for (std::size_t e = 0; e < g.examples; ++e) {
        field.open(e);
        for (Int v = 0; v < field.ex.variables; ++v) {
            field.listening.spend(static_cast<std::size_t>(1 + field.ex.degree(v)) * field.ex.labels(v) * field.ex.labels(v));
            field.expect(v, flags + g.clique_offsets[e]);
            for (std::size_t x = 0; x < field.ex.labels(v); ++x)
                out[field.ex.first_state(v) + static_cast<Int>(x)] = field.score()[x];
        }
    }
}

static void multiply_all(const Scores& g, double* q, const std::uint8_t* flags,
                         const double* weight, double* tables) {
    const GilReleased release;
    MeanField field(g, q);
    for (std::size_t e = 0; e < g.examples; ++e) {
        field.open(e);
        for (Int c = 0; c < field.ex.cliques; ++c)
            if (field.listening.spend(field.size_of(c)); !flags || flags[g.clique_offsets[e] + c])
                field.add_products(c, weight ? weight[e] : 1.0,
                                   tables + g.table_offsets[field.ex.table(c)]);
    }
}

static const Binding binding([](nb::module_& m) {
    // q [states] is the start and becomes the answer.
    m.def(
        "mean_field_ascend",
        [](const BoundScores& g, double tolerance, std::int64_t max_iter, Output<double> q,
           Output<double> bound) {
            Iterations ended(g.examples);
            bool stopped;
            {
                GilReleased release;
                Interruption patience(interrupted);
                MeanField field(g, q.data());
                for (std::size_t e = 0; e < g.examples && !patience.stopped; ++e) {
                    field.open(e);
                    ascend(field, tolerance, max_iter, patience, ended.n_iter[e], ended.change[e],
                           bound.data()[e]);
                }
                stopped = patience.stopped;
                ended.late = patience.late;
            }
            if (stopped) throw Stopped{};
            return ended;
        },
        nb::arg("scores"), nb::arg("tolerance"), nb::arg("max_iter"), nb::kw_only(), nb::arg("q"),
        nb::arg("bound"));
    // The expected score of every label, over the cliques with a flag.
    m.def(
        "mean_field_expect",
        [](const BoundScores& g, Input<std::uint8_t> flags, Output<double> q, Output<double> out) {
            expect_all(g, q.data(), flags.data(), out.data());
        },
        nb::arg("scores"), nb::arg("flags"), nb::kw_only(), nb::arg("q"), nb::arg("out"));
    // Adds Π q of the cliques with a flag (all without), times the example's weight.
    m.def(
        "mean_field_products",
        [](const BoundScores& g, std::optional<Input<std::uint8_t>> flags, Output<double> q,
           Weight weight, Output<double> out_tables) {
            multiply_all(g, q.data(), flags ? flags->data() : nullptr, data_of(weight),
                         out_tables.data());
        },
        nb::arg("scores"), nb::arg("flags").none(), nb::kw_only(), nb::arg("q"),
        nb::arg("weight").none(), nb::arg("out_tables"));
});

}  // namespace chordal
