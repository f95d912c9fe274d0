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
// by |N_a| − |N_v|. Variables with one label are left out of the graph: they cost nothing.
//
// Reference: Kjærulff (1990), Triangulation of graphs; King (1970), An automatic reordering scheme
// for simultaneous equations derived from network systems (sweep); Kask, Gelfand, Otten and Dechter
// (2011), Pushing the power of stochastic greedy ordering schemes for inference in graphical models.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <queue>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "binding.hpp"

namespace chordal {

using Indices = std::vector<std::int64_t>;
using Neighbours = std::vector<std::int32_t>;  // sorted

enum class Rule { fill, weight, sweep, automatic, search };  // the last two: the best of many
constexpr std::size_t kPart = 10'000;  // variables of the part that is tried first

struct Graph {
    const std::int64_t* state_offsets;
    const std::int64_t* variable_offsets;
    const std::int64_t* clique_offsets;
    const std::int64_t* scope_offsets;
    const std::int64_t* scopes;
    std::size_t examples;

    std::int64_t labels(std::int64_t v) const { return state_offsets[v + 1] - state_offsets[v]; }
};

inline void insert(Neighbours& all, std::int32_t v) {
    all.insert(std::lower_bound(all.begin(), all.end(), v), v);
}
inline void erase(Neighbours& all, std::int32_t v) {
    all.erase(std::lower_bound(all.begin(), all.end(), v));
}

// The neighbours of each variable of an example, numbered from 0; those with one label have none.
inline std::vector<Neighbours> neighbours_of(const Graph& g, std::size_t example) {
    const std::int64_t first = g.variable_offsets[example];
    std::vector<Neighbours> adjacent(g.variable_offsets[example + 1] - first);
    Neighbours scope;
    for (auto c = g.clique_offsets[example]; c < g.clique_offsets[example + 1]; ++c) {
        scope.clear();
        for (auto s = g.scope_offsets[c]; s < g.scope_offsets[c + 1]; ++s)
            if (g.labels(g.scopes[s]) > 1) scope.push_back(static_cast<std::int32_t>(g.scopes[s] - first));
        for (const auto a : scope)
            for (const auto b : scope)
                if (a != b) adjacent[a].push_back(b);
    }
    for (auto& all : adjacent) {
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
    }
    return adjacent;
}

// The variables that can be reached from one, nearest first; `most` of them.
inline Neighbours reached_from(const std::vector<Neighbours>& adjacent, std::int32_t start, std::size_t most,
                        std::vector<char>& seen) {
    Neighbours found{start};
    seen[start] = true;
    for (std::size_t k = 0; k < found.size() && found.size() < most; ++k)
        for (const auto a : adjacent[found[k]])
            if (!seen[a]) {
                seen[a] = true;
                found.push_back(a);
            }
    return found;
}

// The graph without all variables that are far from the middle one; nothing for a small graph.
inline std::vector<Neighbours> part_of(const std::vector<Neighbours>& adjacent) {
    if (adjacent.size() < 4 * kPart) return {};
    std::vector<char> seen(adjacent.size());
    reached_from(adjacent, static_cast<std::int32_t>(adjacent.size() / 2), kPart, seen);
    std::vector<Neighbours> part(adjacent.size());
    for (std::size_t v = 0; v < adjacent.size(); ++v)
        if (seen[v])
            std::copy_if(adjacent[v].begin(), adjacent[v].end(), std::back_inserter(part[v]),
                         [&](auto a) { return seen[a]; });
    return part;
}

// Eliminates the variables of one example, numbered from 0. A seed of zero adds no noise.
class Elimination {
public:
    Elimination(const Graph& g, std::size_t example, Rule rule, std::vector<Neighbours> adjacent,
                std::uint64_t seed)
        : rule_(rule), noisy_(seed != 0), random_(seed), adjacent_(std::move(adjacent)),
          fill_(adjacent_.size()), cliques_(adjacent_.size()), log_labels_(adjacent_.size()),
          stamp_(adjacent_.size()), gone_(adjacent_.size()), is_dirty_(adjacent_.size()),
          is_near_(adjacent_.size()), is_open_(adjacent_.size()) {
        for (std::size_t v = 0; v < adjacent_.size(); ++v)
            log_labels_[v] = std::log2(static_cast<double>(
                g.labels(g.variable_offsets[example] + static_cast<std::int64_t>(v))));
        for (const auto& all : adjacent_) work += 8 + all.size();
        if (rule_ == Rule::fill) count_fill();
        if (rule_ == Rule::sweep) start_at_ends();
        for (std::size_t v = 0; v < adjacent_.size(); ++v) push(static_cast<std::int32_t>(v));
    }

    // All variables in order, or as far as tables of 2^limit cells each and `most` cells together
    // lead; false after Ctrl-C.
    bool run(double limit, double most) {
        std::size_t since = 0;
        order.reserve(adjacent_.size());
        while (!queue_.empty()) {
            const Entry best = queue_.top();
            queue_.pop();
            if (gone_[best.v] || best.stamp != stamp_[best.v]) continue;
            order.push_back(best.v);
            const double size = weight(best.v);
            if (!is_covered(best.v)) cells += std::exp2(size);
            if (size > limit || cells > most) {
                complete = false;
                break;
            }
            since += eliminate(best.v);
            if (since > (std::size_t{1} << 24)) {
                work += std::exchange(since, 0);
                if (interrupted()) return false;
            }
        }
        work += since;
        return true;
    }

    // What is left of a variable's neighbours when it goes.
    const Neighbours& neighbours(std::int32_t v) const { return adjacent_[v]; }
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

    // One variable of each piece, as far as possible from some other.
    void start_at_ends() {
        std::vector<char> seen(adjacent_.size()), again(adjacent_.size());
        for (std::size_t v = 0; v < adjacent_.size(); ++v) {
            if (seen[v]) continue;
            const auto there = reached_from(adjacent_, static_cast<std::int32_t>(v), adjacent_.size(), seen);
            const auto back = reached_from(adjacent_, there.back(), adjacent_.size(), again);
            is_near_[back.back()] = true;
        }
    }

    void count_fill() {
        for (std::size_t v = 0; v < adjacent_.size(); ++v) {
            const auto degree = static_cast<std::int64_t>(adjacent_[v].size());
            std::int64_t present = 0;  // twice the edges among neighbours
            for (const auto a : adjacent_[v]) present += common(adjacent_[v], adjacent_[a], [](auto) {});
            fill_[v] = (degree * (degree - 1) - present) / 2;
        }
    }

    template <class Each>
    static std::int64_t common(const Neighbours& a, const Neighbours& b, Each each) {
        std::int64_t count = 0;
        auto i = a.begin(), j = b.begin();
        while (i != a.end() && j != b.end()) {
            if (*i < *j) {
                ++i;
            } else if (*j < *i) {
                ++j;
            } else {
                each(*i);
                ++count, ++i, ++j;
            }
        }
        return count;
    }

    double weight(std::int32_t v) const {
        double sum = log_labels_[v];
        for (const auto a : adjacent_[v]) sum += log_labels_[a];
        return sum;
    }

    void push(std::int32_t v) {
        double size = weight(v);
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
        for (const auto a : adjacent_[v]) cliques_[a].push_back(v);
        return covered;
    }

    double noise() { return 1.0 + 0.3 * std::ldexp(static_cast<double>(random_() >> 11), -53); }

    void touch(std::int32_t v) {
        if (is_dirty_[v]) return;
        is_dirty_[v] = true;
        dirty_.push_back(v);
    }

    std::size_t eliminate(std::int32_t v) {
        const Neighbours& all = adjacent_[v];
        const auto degree = static_cast<std::int64_t>(all.size());
        std::size_t work = 1 + all.size() * all.size();
        gone_[v] = true;
        for (const auto a : all) {
            touch(a);
            is_near_[a] = true;
            work += rule_ == Rule::fill ? join_counting(a, all) : join(a, all);
        }
        for (const auto a : all) {
            if (rule_ == Rule::fill) fill_[a] -= static_cast<std::int64_t>(adjacent_[a].size()) - degree;
            erase(adjacent_[a], v);
        }
        for (const auto a : dirty_) {
            is_dirty_[a] = false;
            if (gone_[a]) continue;
            push(a);
            work += 8 + adjacent_[a].size();
        }
        dirty_.clear();
        return work;
    }

    // Joins a to all later ones of a set, and keeps the fill of everyone.
    std::size_t join_counting(std::int32_t a, const Neighbours& all) {
        std::size_t work = 0;
        missing_.clear();
        std::set_difference(std::upper_bound(all.begin(), all.end(), a), all.end(),
                            adjacent_[a].begin(), adjacent_[a].end(), std::back_inserter(missing_));
        for (const auto b : missing_) {
            const auto both = common(adjacent_[a], adjacent_[b], [&](std::int32_t w) {
                --fill_[w];
                touch(w);
            });
            fill_[a] += static_cast<std::int64_t>(adjacent_[a].size()) - both;
            fill_[b] += static_cast<std::int64_t>(adjacent_[b].size()) - both;
            insert(adjacent_[a], b);
            insert(adjacent_[b], a);
            work += adjacent_[a].size() + adjacent_[b].size();
        }
        return work;
    }

    std::size_t join(std::int32_t a, const Neighbours& all) {
        missing_.clear();
        std::set_union(adjacent_[a].begin(), adjacent_[a].end(), all.begin(), all.end(),
                       std::back_inserter(missing_));
        erase(missing_, a);
        adjacent_[a].swap(missing_);
        return adjacent_[a].size();
    }

    Rule rule_;
    bool noisy_;
    std::mt19937_64 random_;
    std::vector<Neighbours> adjacent_;
    Indices fill_;
    std::vector<Neighbours> cliques_;  // those gone whose neighbour a variable was
    std::vector<double> log_labels_;
    std::vector<std::uint32_t> stamp_;
    std::vector<char> gone_, is_dirty_, is_near_, is_open_;
    Neighbours dirty_, missing_;
    std::priority_queue<Entry> queue_;
};

}  // namespace chordal
