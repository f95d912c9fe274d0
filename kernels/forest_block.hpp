// New labels of a block of variables that form a forest, given all others: drawn, or the best ones.
//
// Two variables of the block that share a clique are parent and child; the clique's other variables are
// fixed, with labels y.
//
//   φ_v(l) = u_v(l) + Σ_{c ∋ v, no other of the block in c} table_c(l, y) + Σ_{w child of v} m_w(l)
//   m_w(l) = ⊕_k φ_w(k) + table_{wv}(k, l, y)                                 (leaves to roots)
//   y_w ∝ exp(φ_w(k) + table_{wv}(k, y_v, y)), or where that is highest        (roots to leaves)
//
// ⊕ is log Σ exp where labels are drawn, else max. Of best labels the first is taken: where many tie, a
// block that moves leaves the next one something to find. All in logarithms: scores of any size. Where no
// labels of a tree are allowed, because others of the present labelling are not, they stay as they are.
#pragma once

#include "label_scores.hpp"
#include "max_message.hpp"
#include "patience.hpp"

namespace chordal {

class ForestBlock {
public:
    ForestBlock(const Frame& g, const CliquesOf& of, const double* unary, const double* tables)
        : g_(g), of_(of), unary_(unary), tables_(tables), inside_(g.variables, 0),
          phi_(g.state_offsets[g.variables]) {
        std::int64_t most = 1;
        for (std::size_t v = 0; v < g.variables; ++v)
            most = std::max(most, g.labels(static_cast<std::int64_t>(v)));
        weight_.resize(most);
    }

    // The variables of one block, parents before children; a uniform number for each.
    void draw(const std::int64_t* order, const std::int64_t* parent, std::size_t n,
              const double* uniform, std::int32_t* y) {
        const auto send = [&](std::int64_t v, std::int64_t p, const Pair& pair, double* to) {
            for (std::int64_t l = 0; l < g_.labels(p); ++l) {
                double total = 0.0;
                const double highest = weigh(v, tables_ + pair.base + l * pair.parent, pair.child, &total);
                to[l] += highest == kNone ? kNone : highest + std::log(total);
            }
        };
        const auto take = [&](std::size_t k, const double* table, std::int64_t stride) {
            double total = 0.0;
            const std::int64_t v = order[k];
            if (weigh(v, table, stride, &total) != kNone)
                y[v] = static_cast<std::int32_t>(place_of(weight_.data(), g_.labels(v), total, uniform[k]));
        };
        renew(order, parent, n, y, send, take);
    }
    void maximise(const std::int64_t* order, const std::int64_t* parent, std::size_t n, std::int32_t* y) {
        const auto send = [&](std::int64_t v, std::int64_t p, const Pair& pair, double* to) {
            send_best(v, p, pair, to);
        };
        const auto take = [&](std::size_t k, const double* table, std::int64_t stride) {
            const std::int64_t v = order[k];
            const double highest = score(v, table, stride);
            if (highest == kNone) return;
            y[v] = static_cast<std::int32_t>(
                std::find(weight_.begin(), weight_.end(), highest) - weight_.begin());
        };
        renew(order, parent, n, y, send, take);
    }

private:
    static constexpr double kNone = -std::numeric_limits<double>::infinity();

    struct Pair {
        std::int64_t base, child, parent;  // the cell of labels 0 and 0, and the two strides
        std::int64_t table;                // which; -1: the clique has more variables
    };

    template <class Send, class Take>
    void renew(const std::int64_t* order, const std::int64_t* parent, std::size_t n,
               const std::int32_t* y, Send send, Take take) {
        for (std::size_t k = 0; k < n; ++k) inside_[order[k]] = 1;
        for (std::size_t k = 0; k < n; ++k) {
            start(order[k], y);
            patience_.spend(8 * labels(order[k]) + 64);
        }
        pairs_.resize(std::max(pairs_.size(), n));
        for (std::size_t k = n; k-- > 0;) {
            if (parent[k] < 0) continue;
            const Pair pair = pairs_[k] = pair_of(order[k], parent[k], y);
            send(order[k], parent[k], pair, phi_.data() + g_.state_offsets[parent[k]]);
            patience_.spend(8 * labels(parent[k]) * labels(order[k]));
        }
        for (std::size_t k = 0; k < n; ++k) {
            const Pair& pair = pairs_[k];
            take(k, parent[k] < 0 ? nullptr : tables_ + pair.base + y[parent[k]] * pair.parent,
                 pair.child);
            patience_.spend(8 * labels(order[k]));
        }
        for (std::size_t k = 0; k < n; ++k) inside_[order[k]] = 0;
    }

    std::size_t labels(std::int64_t v) const { return static_cast<std::size_t>(g_.labels(v)); }

    bool links(std::int64_t v, std::int64_t clique) const {
        for (auto s = g_.scope_offsets[clique]; s < g_.scope_offsets[clique + 1]; ++s)
            if (g_.scopes[s] != v && inside_[g_.scopes[s]]) return true;
        return false;
    }

    void start(std::int64_t v, const std::int32_t* y) {
        double* phi = phi_.data() + g_.state_offsets[v];
        const std::int64_t n = g_.labels(v);
        std::copy_n(unary_ + g_.state_offsets[v], n, phi);
        for (auto c = of_.begin(v); c != of_.end(v); ++c) {
            if (links(v, *c)) continue;
            const Axis axis = axis_of_variable(g_, *c, v, y);
            for (std::int64_t l = 0; l < n; ++l) phi[l] += tables_[axis.base + l * axis.stride];
        }
    }

    Pair pair_of(std::int64_t v, std::int64_t p, const std::int32_t* y) const {
        for (auto c = of_.begin(v);; ++c) {
            Pair pair{0, 0, 0, -1};
            bool found = false;
            for (auto s = g_.scope_offsets[*c]; s < g_.scope_offsets[*c + 1]; ++s) {
                const std::int64_t u = g_.scopes[s], n = g_.labels(u);
                found |= u == p;
                pair.base = pair.base * n + (u == v || u == p ? 0 : y[u]);
                pair.child = u == v ? 1 : pair.child * n;
                pair.parent = u == p ? 1 : pair.parent * n;
            }
            if (!found) continue;
            const std::int32_t table = g_.table_of_clique[*c];
            pair.base += g_.table_offsets[table];
            if (g_.scope_offsets[*c + 1] - g_.scope_offsets[*c] == 2) pair.table = table;
            return pair;
        }
    }

    // Adds the best message of v to its parent's φ.
    void send_best(std::int64_t v, std::int64_t p, const Pair& pair, double* to) {
        const double *phi = phi_.data() + g_.state_offsets[v], *table = tables_ + pair.base;
        const auto columns = labels(v), rows = labels(p);
        if (pair.table < 0) {
            for (std::size_t l = 0; l < rows; ++l)
                to[l] += score(v, table + static_cast<std::int64_t>(l) * pair.parent, pair.child);
            return;
        }
        const double* m = best_.through(pair.table, table, pair.child == 1, phi, columns, rows);
        for (std::size_t l = 0; l < rows; ++l) to[l] += m[l];
    }

    // Fills weight_ with φ_v + table along the child's axis; the highest is returned.
    double score(std::int64_t v, const double* table, std::int64_t stride) {
        const double* phi = phi_.data() + g_.state_offsets[v];
        double highest = kNone;
        for (std::int64_t l = 0; l < g_.labels(v); ++l) {
            weight_[l] = table ? phi[l] + table[l * stride] : phi[l];
            highest = std::max(highest, weight_[l]);
        }
        return highest;
    }
    // The same, and then with exp(… - highest), which add up to `total`.
    double weigh(std::int64_t v, const double* table, std::int64_t stride, double* total) {
        const double highest = score(v, table, stride);
        if (highest == kNone) return kNone;
        for (std::int64_t l = 0; l < g_.labels(v); ++l)
            *total += weight_[l] = weight_[l] == highest ? 1.0 : std::exp(weight_[l] - highest);
        return highest;
    }

    const Frame& g_;
    const CliquesOf of_;
    const double* unary_;
    const double* tables_;
    std::vector<std::uint8_t> inside_;  // [variables] of the block
    std::vector<Pair> pairs_;           // of each place in the block
    std::vector<double> phi_;           // [states]
    std::vector<double> weight_;        // of one variable's labels
    BestMessages best_;
    CHORDAL_ISA::Patience patience_{interrupted};
};

// Calls visit(places from, how many) block by block.
template <class Visit>
void for_blocks(const std::int64_t* offsets, std::size_t blocks, Visit visit) {
    for (std::size_t b = 0; b < blocks; ++b)
        visit(offsets[b], static_cast<std::size_t>(offsets[b + 1] - offsets[b]));
}

}  // namespace chordal
