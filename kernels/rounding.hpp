// From beliefs about single variables to a labelling.
//
// 1. Variables are visited from the surest on (the largest belief). Each takes, of the labels that
//    break the fewest constraints (scores of -inf) with those labelled before, the one of the
//    highest belief; of equal beliefs, the one of the highest score with those labelled before.
// 2. Each variable takes its best label given all others, in order, until none changes: fewer
//    broken constraints first, then the higher score (conditionals.hpp). The score never falls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "conditionals.hpp"
#include "patience.hpp"

namespace chordal {

class Rounding {
public:
    Rounding(const Frame& g, const Members& members, const double* unary, const double* tables)
        : g_(g), members_(members), unary_(unary), tables_(tables), labelled_(g.variables) {
        std::int64_t most = 1;
        for (std::size_t v = 0; v < g.variables; ++v)
            most = std::max(most, g.labels(static_cast<std::int64_t>(v)));
        score_.resize(most);
        broken_.resize(most);
    }

    // The variables [first, last) of one example; beliefs [states] and y [variables] of all.
    void round(std::int64_t first, std::int64_t last, const double* beliefs, std::int32_t* y) {
        start(first, last, beliefs, y);
        descend(first, last, y);
    }

private:
    static constexpr double kNone = -std::numeric_limits<double>::infinity();
    static constexpr int kSweeps = 100;

    void start(std::int64_t first, std::int64_t last, const double* beliefs, std::int32_t* y) {
        order_.resize(last - first);
        std::iota(order_.begin(), order_.end(), first);
        surest_.resize(last - first);
        for (auto v = first; v < last; ++v) {
            surest_[v - first] = *std::max_element(beliefs + g_.state_offsets[v],
                                                   beliefs + g_.state_offsets[v + 1]);
            labelled_[v] = 0;
        }
        std::stable_sort(order_.begin(), order_.end(), [&](std::int64_t a, std::int64_t b) {
            return surest_[a - first] > surest_[b - first];
        });
        for (const std::int64_t v : order_) {
            weigh(v, y, true);
            const double* belief = beliefs + g_.state_offsets[v];
            std::int32_t best = 0;
            for (std::int32_t l = 1; l < g_.labels(v); ++l) {
                if (broken_[l] != broken_[best] ? broken_[l] < broken_[best]
                    : belief[l] != belief[best] ? belief[l] > belief[best]
                                                : score_[l] > score_[best])
                    best = l;
            }
            y[v] = best;
            labelled_[v] = 1;
        }
    }

    void descend(std::int64_t first, std::int64_t last, std::int32_t* y) {
        bool changed = true;
        for (int sweep = 0; sweep < kSweeps && changed; ++sweep) {
            changed = false;
            for (auto v = first; v < last; ++v) {
                weigh(v, y, false);
                std::int32_t best = y[v];
                for (std::int32_t l = 0; l < g_.labels(v); ++l)
                    if (broken_[l] < broken_[best] ||
                        (broken_[l] == broken_[best] && score_[l] > score_[best]))
                        best = l;
                changed |= best != y[v];
                y[v] = best;
            }
        }
    }

    // Score and broken constraints of each label, from the cliques whose other variables are
    // labelled already, or from all.
    void weigh(std::int64_t v, const std::int32_t* y, bool partly) {
        const std::int64_t n = g_.labels(v);
        patience_.spend(64 + 8 * static_cast<std::size_t>(n));
        std::fill_n(score_.begin(), n, 0.0);
        std::fill_n(broken_.begin(), n, 0);
        add(unary_ + g_.state_offsets[v], 1, n);
        for (auto m = members_.begin(v); m != members_.end(v); ++m) {
            if (partly && !others_labelled(*m)) continue;
            const Axis axis = axis_of(g_, *m, y);
            add(tables_ + axis.base, axis.stride, n);
        }
    }

    bool others_labelled(const Members::Member& m) const {
        for (auto s = g_.scope_offsets[m.clique]; s < g_.scope_offsets[m.clique + 1]; ++s)
            if (s != m.place && !labelled_[g_.scopes[s]]) return false;
        return true;
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
    const Members& members_;
    const double* unary_;
    const double* tables_;
    std::vector<char> labelled_;
    std::vector<double> score_, surest_;
    std::vector<int> broken_;
    std::vector<std::int64_t> order_;
    CHORDAL_ISA::Patience patience_{interrupted};
};

}  // namespace chordal
