// Moves that change many labels at once, each found by a minimum cut.
//
// Some variables take part; each has two labels to choose from, one of them its own. The others keep
// theirs. With x_v the choice and s_ab the scores of a clique for the choices of its ends, the best
// choice is a minimum cut as in max_flow.cpp if w = s_00 + s_11 - s_01 - s_10 >= 0. Where w < 0, one
// score is changed by |w| so that it is 0, such that the score of the labelling cannot fall:
//
//   the ends have now     0 0          1 1          0 1          1 0
//   changed               s_00 + |w|   s_11 + |w|   s_10 - |w|   s_01 - |w|
//
// (the present labelling may look better than it is, others worse). A move is accepted if the true
// score rises.
//
// A score of -inf counts as -M, where M is more than all finite scores together can differ, so that a
// labelling that breaks fewer constraints is always the better one; no labelling has to be allowed at
// the start. The network is laid out once for an example and its memory serves all moves.
//
// References: Boykov, Veksler and Zabih (2001), Fast approximate energy minimization via graph cuts;
// Rother, Kumar, Kolmogorov and Blake (2005), Digital tapestry (the truncation).
#pragma once

#include "max_flow.hpp"

namespace chordal {

class CutMoves {
public:
    CutMoves(const Frame& g, const std::int64_t* clique_offsets, std::size_t example,
             const double* unary, const double* tables, std::int32_t* labels)
        : g_(g), first_(g.variable_offsets[example]), clique_(clique_offsets[example]),
          tables_(tables), y_(labels + first_),
          network_(g, first_, g.variable_offsets[example + 1], clique_,
                   clique_offsets[example + 1]),
          state_(g.state_offsets[first_]),
          takes_part_(network_.nodes(), 0), present_(network_.nodes()), terminal_(network_.nodes()) {
        choice_[0].resize(network_.nodes());
        choice_[1].resize(network_.nodes());
        const auto states = static_cast<std::size_t>(g.state_offsets[g.variable_offsets[example + 1]] - state_);
        enlarge(unary_, states, patience_);
        for (std::size_t k = 0; k < states; ++k) unary_[k] = unary[state_ + static_cast<std::int64_t>(k)];
        double range = 1.0;
        std::vector<double> ranges(g.n_tables, -1.0);  // tables may be shared by many cliques
        for (auto c = clique_; c < clique_offsets[example + 1]; ++c) {
            const auto cells = g.table_offsets[g.table_of_clique[c] + 1] -
                               g.table_offsets[g.table_of_clique[c]];
            patience_.spend(16);
            if (g.scope_offsets[c + 1] - g.scope_offsets[c] == 1) {
                double* u = unary_.data() + offset(g.scopes[g.scope_offsets[c]] - first_);
                for (std::int64_t l = 0; l < cells; ++l) u[l] += table(c)[l];
            } else {
                double& of_table = ranges[g.table_of_clique[c]];
                if (of_table < 0.0) {
                    of_table = range_of(table(c), cells);
                    patience_.spend(static_cast<std::size_t>(cells));
                }
                range += of_table;
            }
        }
        for (std::int32_t v = 0; v < nodes(); ++v) {
            most_ = std::max(most_, count(v));
            range += range_of(unary_.data() + offset(v), count(v));
        }
        penalty_ = 2.0 * range;
    }

    std::int32_t nodes() const { return network_.nodes(); }
    std::int32_t most_labels() const { return most_; }
    std::int32_t count(std::int32_t v) const {
        return static_cast<std::int32_t>(g_.labels(first_ + v));
    }
    std::int32_t label(std::int32_t v) const { return y_[v]; }

    // A node takes part in the next move; one of the two labels is the one it has.
    void offer(std::int32_t v, std::int32_t zero, std::int32_t one) {
        takes_part_[v] = 1;
        choice_[0][v] = zero;
        choice_[1][v] = one;
        present_[v] = y_[v] == one;
        part_.push_back(v);
    }

    // Makes the best move with what was offered, if the score rises; adds to `gain` by how much.
    bool move(double* gain) {
        patience_.spend(16 * static_cast<std::size_t>(nodes()));  // about what offers and sums take
        cut();
        const bool better = accept(gain);
        for (const std::int32_t v : part_) takes_part_[v] = 0;
        part_.clear();
        return better;
    }

private:
    static constexpr double kForbidden = -std::numeric_limits<double>::infinity();

    struct Change {
        std::int64_t broken = 0;  // constraints
        double score = 0.0, size = 0.0;

        void add(double after, double before) {
            broken += (after == kForbidden) - (before == kForbidden);
            after = after == kForbidden ? 0.0 : after;
            before = before == kForbidden ? 0.0 : before;
            score += after - before;
            size += std::abs(after) + std::abs(before);
        }
        // Beyond what rounding may have made of nothing.
        bool improves() const { return broken < 0 || (broken == 0 && score > 1e-13 * size); }
    };

    static double range_of(const double* s, std::int64_t n) {
        double low = 0.0, high = 0.0;
        bool any = false;
        for (std::int64_t k = 0; k < n; ++k) {
            if (s[k] == kForbidden) continue;
            low = any ? std::min(low, s[k]) : s[k];
            high = any ? std::max(high, s[k]) : s[k];
            any = true;
        }
        return high - low;
    }

    std::int64_t offset(std::int64_t v) const { return g_.state_offsets[first_ + v] - state_; }
    const double* table(std::int64_t c) const {
        return tables_ + g_.table_offsets[g_.table_of_clique[c]];
    }
    double finite(double s) const { return s == kForbidden ? -penalty_ : s; }

    // The score of labels l and m at the tail and head of an arc.
    double pair(std::int32_t a, std::int32_t v, std::int32_t l, std::int32_t m) const {
        const std::int32_t k = network_.clique(a);
        return k >= 0 ? table(clique_ + k)[std::int64_t{l} * count(network_.head(a)) + m]
                      : table(clique_ + ~k)[std::int64_t{m} * count(v) + l];
    }

    void cut() {
        for (const std::int32_t v : part_)
            terminal_[v] = finite(unary_[offset(v) + choice_[0][v]]) -
                           finite(unary_[offset(v) + choice_[1][v]]);
        weight_.clear();
        double total = 0.0;
        for (const std::int32_t v : part_)
            for (auto a = network_.begin(v); a < network_.end(v); ++a) total += add_clique(v, a);
        for (const std::int32_t v : part_) total += std::abs(terminal_[v]);
        const double scale = capacity_scale(total);
        auto weight = weight_.begin();
        for (const std::int32_t v : part_) {
            network_.set_terminal(v, std::llrint(scale * terminal_[v]));
            for (auto a = network_.begin(v); a < network_.end(v); ++a) {
                if (takes_part_[network_.head(a)] && network_.clique(a) < 0) continue;
                const Capacity half =
                    takes_part_[network_.head(a)] ? std::llrint(0.5 * scale * *weight++) : 0;
                network_.set_capacity(a, half, half);
            }
        }
        network_.solve();
    }

    // What an arc's clique adds to the terminals; the result is its capacity, also kept in weight_.
    double add_clique(std::int32_t v, std::int32_t a) {
        const std::int32_t u = network_.head(a);
        if (!takes_part_[u]) {
            terminal_[v] += finite(pair(a, v, choice_[0][v], y_[u])) -
                            finite(pair(a, v, choice_[1][v], y_[u]));
            return 0.0;
        }
        if (network_.clique(a) < 0) return 0.0;  // seen from the other end
        double s[2][2];
        for (int x = 0; x < 2; ++x)
            for (int z = 0; z < 2; ++z) s[x][z] = finite(pair(a, v, choice_[x][v], choice_[z][u]));
        double w = (s[0][0] - s[0][1]) + (s[1][1] - s[1][0]);
        if (w < 0.0) {
            const int x = present_[v], z = present_[u];
            if (x == z)
                s[x][z] -= w;
            else
                s[z][x] += w;
            w = 0.0;
        }
        terminal_[v] += 0.5 * ((s[0][0] - s[1][0]) + (s[0][1] - s[1][1]));
        terminal_[u] += 0.5 * ((s[0][0] - s[0][1]) + (s[1][0] - s[1][1]));
        weight_.push_back(w);
        return w;
    }

    std::int32_t chosen(std::int32_t v) const {
        return takes_part_[v] ? choice_[!network_.on_source_side(v)][v] : y_[v];
    }

    bool accept(double* gain) {
        Change change;
        for (const std::int32_t v : part_) {
            const std::int32_t next = chosen(v);
            if (next == y_[v]) continue;
            change.add(unary_[offset(v) + next], unary_[offset(v) + y_[v]]);
            for (auto a = network_.begin(v); a < network_.end(v); ++a) {
                const std::int32_t u = network_.head(a), other = chosen(u);
                if (other != y_[u] && network_.clique(a) < 0) continue;  // counted from there
                change.add(pair(a, v, next, other), pair(a, v, y_[v], y_[u]));
            }
        }
        if (!change.improves()) return false;
        // Labels after all sums: `chosen` reads those of the others.
        for (const std::int32_t v : part_) y_[v] = chosen(v);
        *gain += change.broken < 0 ? std::numeric_limits<double>::infinity() : change.score;
        return true;
    }

    const Frame& g_;
    const std::int64_t first_, clique_;  // variable and clique of the batch
    const double* tables_;
    std::int32_t* y_;
    FlowNetwork network_;
    std::int64_t state_;
    std::vector<double> unary_;  // [states], with the tables of cliques of one variable
    std::vector<std::uint8_t> takes_part_, present_;  // [nodes]
    std::vector<double> terminal_;                    // [nodes]
    std::vector<double> weight_;                      // of the cliques between nodes that take part
    std::vector<std::int32_t> choice_[2];             // [nodes]
    std::vector<std::int32_t> part_;
    std::int32_t most_ = 0;
    double penalty_ = 0.0;
    CHORDAL_ISA::Patience patience_{interrupted};
};

// Rounds of moves from the given labels until as many as a whole round has raise an example's score no more.
// `try_all(moves, run)` offers one move after another, calls run() for each, and returns when that says no.
// `done.change` is the gain of the last round.
template <class TryAll>
void rounds_of_moves(const Scores& g, std::int64_t max_iter, std::int32_t* labels, Iterations& done,
                     TryAll try_all) {
    for (std::size_t e = 0; e < g.examples; ++e) {
        CutMoves moves(g, g.clique_offsets, e, g.unary, g.tables, labels);
        std::int64_t in_a_round = 0, in_vain = 0;  // the moves that failed since one did not
        do {
            done.change[e] = 0.0;
            try_all(moves, [&] {
                in_a_round += done.n_iter[e] == 0;
                in_vain = moves.move(&done.change[e]) ? 0 : in_vain + 1;
                return done.n_iter[e] == 0 || in_vain < in_a_round;
            });
            ++done.n_iter[e];
        } while (in_vain < in_a_round && done.n_iter[e] < max_iter);
    }
}

// Adds a function of this name to the module, whose moves are those of `try_all`.
template <class TryAll>
void bind_moves(nb::module_& m, const char* name, TryAll try_all) {
    m.def(
        name,
        [try_all](const BoundScores& scores, std::int64_t max_iter, Output<std::int32_t> labels) {
            Iterations done(scores.examples);
            ended_by_time(done, [&] {
                GilReleased release;
                rounds_of_moves(scores, max_iter, labels.data(), done, try_all);
            });
            return done;
        },
        nb::arg("scores"), nb::arg("max_iter"), nb::arg("labels"));
}

}  // namespace chordal
