// What the labels of one variable score given all others, and what is done with it: draw or maximise.
//
// Scores of -inf are counted apart: of the labels that break the fewest constraints, one is drawn, or
// the best is taken, by the finite rest of its score. From a labelling that is allowed, all that
// follow are; from one that is not, each visit repairs what it can.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "conditionals.hpp"

namespace chordal {

// Where a clique's table is read along the axis of v, given the labels y of the others.
inline Axis axis_of_variable(const Frame& g, std::int64_t clique, std::int64_t v,
                             const std::int32_t* y) {
    std::int64_t base = 0, stride = 0;
    for (auto s = g.scope_offsets[clique]; s < g.scope_offsets[clique + 1]; ++s) {
        const std::int64_t u = g.scopes[s], n = g.labels(u);
        base = base * n + (u == v ? 0 : y[u]);
        stride = u == v ? 1 : stride * n;
    }
    return {g.table_offsets[g.table_of_clique[clique]] + base, stride};
}

// The place in [0, n) that a uniform number meets among weights; those of 0 are never met.
inline std::int64_t place_of(const double* weight, std::int64_t n, double total, double uniform) {
    double rest = uniform * total;
    std::int64_t place = 0;
    for (std::int64_t l = 0; l < n; ++l) {
        if (weight[l] == 0.0) continue;
        place = l;  // rounding may leave `rest` above the last one
        rest -= weight[l];
        if (rest < 0.0) break;
    }
    return place;
}

class LabelScores {
public:
    LabelScores(const Frame& g, const CliquesOf& of, const double* unary, const double* tables)
        : g_(g), of_(of), unary_(unary), tables_(tables) {
        std::int64_t most = 1;
        for (std::size_t v = 0; v < g.variables; ++v)
            most = std::max(most, g.labels(static_cast<std::int64_t>(v)));
        score_.resize(most);
        broken_.resize(most);
    }

    // Draws y_v by exp(β s_v).
    void draw(std::int64_t v, double uniform, double beta, std::int32_t* y) {
        const std::int64_t n = fill(v, y);
        const int fewest = *std::min_element(broken_.begin(), broken_.begin() + n);
        double highest = kNone, total = 0.0;
        for (std::int64_t l = 0; l < n; ++l)
            if (broken_[l] == fewest) highest = std::max(highest, score_[l]);
        for (std::int64_t l = 0; l < n; ++l)
            total += score_[l] = broken_[l] == fewest ? std::exp(beta * (score_[l] - highest)) : 0.0;
        y[v] = static_cast<std::int32_t>(place_of(score_.data(), n, total, uniform));
    }

    // Takes the best label if it is better than the present one; by how much, +inf if a constraint
    // is repaired.
    double improve(std::int64_t v, std::int32_t* y) {
        const std::int64_t n = fill(v, y);
        std::int64_t best = y[v];
        for (std::int64_t l = 0; l < n; ++l)
            if (broken_[l] < broken_[best] ||
                (broken_[l] == broken_[best] && score_[l] > score_[best]))
                best = l;
        const bool repaired = broken_[best] < broken_[y[v]];
        const double gain = score_[best] - score_[y[v]];
        // A difference that rounding can make is none: two labels must not take turns for ever.
        if (!repaired && gain <= 1e-13 * (std::abs(score_[best]) + std::abs(score_[y[v]]))) return 0.0;
        y[v] = static_cast<std::int32_t>(best);
        return repaired ? std::numeric_limits<double>::infinity() : gain;
    }

    std::size_t work(std::int64_t v) const {
        return static_cast<std::size_t>(g_.labels(v) * (4 + (of_.end(v) - of_.begin(v))));
    }

private:
    static constexpr double kNone = -std::numeric_limits<double>::infinity();

    std::int64_t fill(std::int64_t v, const std::int32_t* y) {
        const std::int64_t n = g_.labels(v);
        std::fill_n(score_.begin(), n, 0.0);
        std::fill_n(broken_.begin(), n, 0);
        add(unary_ + g_.state_offsets[v], 1, n);
        for (auto c = of_.begin(v); c != of_.end(v); ++c) {
            const Axis axis = axis_of_variable(g_, *c, v, y);
            add(tables_ + axis.base, axis.stride, n);
        }
        return n;
    }

    void add(const double* from, std::int64_t stride, std::int64_t n) {
        for (std::int64_t l = 0; l < n; ++l) {
            const double x = from[l * stride];
            if (x == kNone)
                ++broken_[l];
            else
                score_[l] += x;
        }
    }

    const Frame& g_;
    const CliquesOf of_;
    const double* unary_;
    const double* tables_;
    std::vector<double> score_;
    std::vector<int> broken_;
};

}  // namespace chordal
