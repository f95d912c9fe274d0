// Elimination orders: in which variables leave a graph, and what is then joined.
//
// Variables are neighbours if a clique has both. Eliminating v joins all its neighbours N_v to each
// other and takes v away; {v} ∪ N_v is what a table needs room for. The next one is that with
//
//   min_fill     the fewest edges to add among its neighbours (then the smallest table)
//   min_weight   the smallest table, Π_{u ∈ {v} ∪ N_v} L_u
//   sweep        the smallest table among the neighbours of what has gone, from a far end of the
//                graph on: best on what is long and thin
//
// With a seed, prices are raised by a random share of up to 0.3: no two orders are the same, and the
// best of some hundred is often far better than the greedy one.
//
// The fill f_v, missing edges among N_v, is kept up to date: an edge (a, b) that is added lowers
// it by one for all common neighbours, and raises f_a by |N_a \ N_b|; taking v away then lowers f_a
// by |N_a| − |N_v|. So is log2 of the table's size, in whole numbers, whose sums do not depend on their
// order: a variable that has many neighbours is not looked through whenever one of them goes.
//
// Reference: Kjærulff (1990), Triangulation of graphs; King (1970), An automatic reordering scheme
// for simultaneous equations derived from network systems (sweep); Kask, Gelfand, Otten and Dechter
// (2011), Pushing the power of stochastic greedy ordering schemes for inference in graphical models.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <queue>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "binding.hpp"
#include "elimination_graph.hpp"
#include "neighbourhood.hpp"
#include "patience.hpp"

namespace chordal {

enum class Rule { fill, weight, sweep, automatic, search };  // the last two: the best of many
// Eliminates the variables of one example, numbered from 0. A seed of zero adds no noise.
class Elimination {
public:
    Elimination(const Topology& g, std::size_t example, Rule rule, const std::vector<Neighbours>& adjacent,
                std::uint64_t seed)
        : rule_(rule), noisy_(seed != 0), random_(seed), adjacent_(adjacent.begin(), adjacent.end()),
          fill_(adjacent_.size()), weight_(adjacent_.size()), log_labels_(adjacent_.size()),
          cliques_(adjacent_.size()), stamp_(adjacent_.size()), gone_(adjacent_.size()),
          is_dirty_(adjacent_.size()), is_near_(adjacent_.size()), is_open_(adjacent_.size()) {
        for (std::size_t v = 0; v < adjacent_.size(); ++v)
            log_labels_[v] = std::llround(kUnit * std::log2(static_cast<double>(
                g.labels(g.variable_offsets[example] + static_cast<std::int64_t>(v)))));
        for (std::size_t v = 0; v < adjacent_.size(); ++v) {
            weight_[v] = log_labels_[v];
            for (const auto a : adjacent[v]) weight_[v] += log_labels_[a];
            work += 8 + adjacent[v].size();
            patience_.spend(32 + adjacent[v].size());
        }
        if (rule_ == Rule::fill) count_fill();
        if (rule_ == Rule::sweep) start_at_ends(adjacent);
        for (std::size_t v = 0; v < adjacent_.size(); ++v) push(static_cast<std::int32_t>(v));
    }

    // All variables in order, or as far as tables of 2^limit cells each and `most` cells together
    // lead.
    void run(double limit, double most) {
        order.reserve(adjacent_.size());
        while (!queue_.empty()) {
            const Entry best = queue_.top();
            queue_.pop();
            if (gone_[best.v] || best.stamp != stamp_[best.v]) continue;
            order.push_back(best.v);
            adjacent_[best.v].settle(gone_);
            const double size = log_size(best.v);
            if (!is_covered(best.v)) cells += std::exp2(size);
            if (size > limit || cells > most) {
                complete = false;
                break;
            }
            work += eliminate(best.v);
        }
    }

    // All variables in order; where even the cheapest one's table would have more than 2^limit cells, a
    // variable of that table is taken out of the graph instead, with its edges: one with a large table of its
    // own, times its price. Returns those taken out.
    Neighbours run_dropping(double limit, const double* price) {
        Neighbours dropped;
        while (!queue_.empty()) {
            const Entry best = queue_.top();
            queue_.pop();
            if (gone_[best.v] || best.stamp != stamp_[best.v]) continue;
            adjacent_[best.v].settle(gone_);
            if (log_size(best.v) <= limit) {
                order.push_back(best.v);
                eliminate(best.v);
                continue;
            }
            std::int32_t most = best.v;
            double largest = 0.0;
            for (const auto a : neighbours(best.v)) {
                const double size = log_size(a) * noise() * price[a];
                if (size > largest) most = a, largest = size;
            }
            dropped.push_back(most);
            drop(most);
            if (most != best.v) push(best.v);
        }
        return dropped;
    }

    // What is left of a variable's neighbours when it goes.
    const Neighbours& neighbours(std::int32_t v) const { return adjacent_[v].all(); }
    std::size_t size() const { return adjacent_.size(); }

    Neighbours order;
    bool complete = true;
    double cells = 0.0;    // of the tables of all maximal cliques
    std::size_t work = 0;  // steps that the order took

private:
    struct Entry {
        double first, second;
        std::int32_t v;
        std::uint32_t stamp;
        bool operator<(const Entry& other) const {  // the top of the queue is the smallest
            return std::tie(first, second, v) > std::tie(other.first, other.second, other.v);
        }
    };

    static constexpr double kUnit = 0x1p36;  // of log2: 10⁶ neighbours of any size fit into 63 bits

    // One variable of each piece, as far as possible from some other.
    void start_at_ends(const std::vector<Neighbours>& adjacent) {
        Marks seen(adjacent.size()), again(adjacent.size());
        for (std::size_t v = 0; v < adjacent.size(); ++v) {
            if (seen[v]) continue;
            const auto there = reached_from(adjacent, static_cast<std::int32_t>(v), adjacent.size(), seen);
            const auto back = reached_from(adjacent, there.back(), adjacent.size(), again);
            is_near_[back.back()] = true;
        }
    }

    void count_fill() {
        for (std::size_t v = 0; v < adjacent_.size(); ++v) {
            const auto degree = static_cast<std::int64_t>(adjacent_[v].size());
            std::int64_t present = 0;  // twice the edges among neighbours
            for (const auto a : adjacent_[v].all()) {
                present += Neighbourhood::common(adjacent_[v], adjacent_[a], gone_, [](auto) {});
                patience_.spend(64 + 2 * std::min(adjacent_[v].size(), adjacent_[a].size()));
            }
            fill_[v] = (degree * (degree - 1) - present) / 2;
        }
    }

    double log_size(std::int32_t v) const { return static_cast<double>(weight_[v]) / kUnit; }

    void push(std::int32_t v) {
        double size = log_size(v);
        double before = 0.0;
        if (rule_ == Rule::fill) before = static_cast<double>(fill_[v]);
        if (rule_ == Rule::sweep) before = is_near_[v] ? 0.0 : 1.0;
        if (noisy_) {
            before *= noise();
            size *= noise();
        }
        queue_.push({before, size, v, ++stamp_[v]});
    }

    // Whether v and its neighbours are in the clique of one that has gone. Of a clique's variables, only
    // the first that goes has to look.
    bool is_covered(std::int32_t v) {
        bool covered = false;
        for (const auto u : cliques_[v]) {
            covered |= is_open_[u] && adjacent_[u].size() == adjacent_[v].size() + 1;
            is_open_[u] = false;
        }
        is_open_[v] = true;
        for (const auto a : neighbours(v)) cliques_[a].push_back(v);
        return covered;
    }

    double noise() { return 1.0 + 0.3 * std::ldexp(static_cast<double>(random_() >> 11), -53); }

    void touch(std::int32_t v) {
        if (is_dirty_[v]) return;
        is_dirty_[v] = true;
        dirty_.push_back(v);
    }

    // Takes a variable out with its edges; prices by weight alone stay right.
    void drop(std::int32_t v) {
        adjacent_[v].settle(gone_);
        gone_[v] = true;
        for (const auto a : neighbours(v)) {
            is_near_[a] = true;
            weight_[a] -= log_labels_[v];
            adjacent_[a].remove(v, gone_);
            patience_.spend(64);
            push(a);
        }
    }

    std::size_t eliminate(std::int32_t v) {
        const Neighbours& all = neighbours(v);
        const auto degree = static_cast<std::int64_t>(all.size());
        std::size_t work = 1 + all.size() * all.size();
        for (const auto a : all) {
            touch(a);
            is_near_[a] = true;
            patience_.spend(64 + 16 * all.size());
            for (auto b = std::upper_bound(all.begin(), all.end(), a); b != all.end(); ++b)
                if (!adjacent_[a].has(*b)) work += join(a, *b);
        }
        gone_[v] = true;
        for (const auto a : all) {
            fill_[a] -= static_cast<std::int64_t>(adjacent_[a].size()) - degree;
            weight_[a] -= log_labels_[v];
            adjacent_[a].remove(v, gone_);
        }
        for (const auto a : dirty_) {
            is_dirty_[a] = false;
            if (gone_[a]) continue;
            push(a);
            work += 16;
        }
        dirty_.clear();
        return work;
    }

    // Adds an edge, and keeps the fill of everyone.
    std::size_t join(std::int32_t a, std::int32_t b) {
        std::size_t work = 2;
        if (rule_ == Rule::fill) {
            const auto both = Neighbourhood::common(adjacent_[a], adjacent_[b], gone_, [&](std::int32_t w) {
                --fill_[w];
                touch(w);
            });
            fill_[a] += static_cast<std::int64_t>(adjacent_[a].size()) - both;
            fill_[b] += static_cast<std::int64_t>(adjacent_[b].size()) - both;
            work += std::min(adjacent_[a].size(), adjacent_[b].size());
        }
        patience_.spend(16 * work);
        weight_[a] += log_labels_[b];
        weight_[b] += log_labels_[a];
        adjacent_[a].add(b, gone_);
        adjacent_[b].add(a, gone_);
        return work;
    }

    Rule rule_;
    bool noisy_;
    CHORDAL_ISA::Patience patience_{interrupted};
    std::mt19937_64 random_;
    std::vector<Neighbourhood> adjacent_;
    Indices fill_, weight_, log_labels_;
    std::vector<Neighbours> cliques_;  // those gone whose neighbour a variable was
    std::vector<std::uint32_t> stamp_;
    Marks gone_, is_dirty_, is_near_, is_open_;
    Neighbours dirty_;
    std::priority_queue<Entry> queue_;
};

}  // namespace chordal
