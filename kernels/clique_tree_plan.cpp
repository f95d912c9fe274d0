// Elimination orders, and the clique tree that an order makes of a graph.
//
// Variables are neighbours if a clique has both. Eliminating v joins all its neighbours N_v to each
// other and takes v away; {v} ∪ N_v is what a table needs room for. The next one is that with
//
//   min_fill     the fewest edges to add among its neighbours (then the smallest table)
//   min_weight   the smallest table, Π_{u ∈ {v} ∪ N_v} L_u
//
// The graph with all added edges is chordal. Its maximal cliques are the clusters: v's neighbour p
// that goes first has N_v ⊆ {p} ∪ N_p, and where both are equal, p needs no cluster of its own. The
// cluster with the last of such a run of variables hangs from the cluster of that one's p, so that
// any two clusters' common variables lie in all clusters between them (a maximum-weight spanning
// tree of the cliques).
//
// Each cluster's variables come in the order of elimination: first the residual, those in no
// cluster nearer to the root, then the separator. Clusters come children first.
//
// The fill f_v, missing edges among N_v, is kept up to date: an edge (a, b) that is added lowers
// it by one for all common neighbours, and raises f_a by |N_a \ N_b|; taking v away then lowers f_a
// by |N_a| − |N_v|. Variables with one label are left out of the graph: they cost nothing.
//
// Reference: Kjærulff (1990), Triangulation of graphs; Koller and Friedman (2009), Probabilistic
// graphical models, sections 9.4 and 10.4.
#include <algorithm>
#include <cmath>
#include <queue>
#include <tuple>
#include <vector>

#include <nanobind/stl/tuple.h>

#include "binding.hpp"

namespace chordal {
namespace {

using Indices = std::vector<std::int64_t>;
using Neighbours = std::vector<std::int32_t>;  // sorted

struct Graph {
    const std::int64_t* state_offsets;
    const std::int64_t* variable_offsets;
    const std::int64_t* clique_offsets;
    const std::int64_t* scope_offsets;
    const std::int64_t* scopes;
    std::size_t examples;

    std::int64_t labels(std::int64_t v) const { return state_offsets[v + 1] - state_offsets[v]; }
};

void insert(Neighbours& all, std::int32_t v) {
    all.insert(std::lower_bound(all.begin(), all.end(), v), v);
}
void erase(Neighbours& all, std::int32_t v) {
    all.erase(std::lower_bound(all.begin(), all.end(), v));
}

// Eliminates the variables of one example, numbered from 0.
class Elimination {
public:
    Elimination(const Graph& g, std::size_t example, bool by_fill)
        : first_(g.variable_offsets[example]), by_fill_(by_fill),
          adjacent_(g.variable_offsets[example + 1] - first_), fill_(adjacent_.size()),
          log_labels_(adjacent_.size()), stamp_(adjacent_.size()), gone_(adjacent_.size()),
          is_dirty_(adjacent_.size()) {
        for (std::size_t v = 0; v < adjacent_.size(); ++v)
            log_labels_[v] = std::log2(static_cast<double>(g.labels(first_ + static_cast<std::int64_t>(v))));
        join_cliques(g, example);
        if (by_fill_) count_fill();
        for (std::size_t v = 0; v < adjacent_.size(); ++v) push(static_cast<std::int32_t>(v));
    }

    // All variables in order, or as far as tables of 2^limit cells lead; false after Ctrl-C.
    bool run(double limit) {
        std::size_t work = 0;
        order.reserve(adjacent_.size());
        while (!queue_.empty()) {
            const Entry best = queue_.top();
            queue_.pop();
            if (gone_[best.v] || best.stamp != stamp_[best.v]) continue;
            order.push_back(best.v);
            largest = std::max(largest, weight(best.v));
            if (weight(best.v) > limit) {
                complete = false;
                return true;
            }
            work += eliminate(best.v);
            if (work > (std::size_t{1} << 24)) {
                work = 0;
                if (interrupted()) return false;
            }
        }
        return true;
    }

    // What is left of a variable's neighbours when it goes.
    const Neighbours& neighbours(std::int32_t v) const { return adjacent_[v]; }
    std::size_t size() const { return adjacent_.size(); }

    Neighbours order;
    bool complete = true;
    double largest = 0.0;

private:
    struct Entry {
        double first, second;
        std::int32_t v;
        std::uint32_t stamp;
        bool operator<(const Entry& other) const {  // the top of the queue is the smallest
            return std::tie(first, second, v) > std::tie(other.first, other.second, other.v);
        }
    };

    void join_cliques(const Graph& g, std::size_t example) {
        Neighbours scope;
        for (auto c = g.clique_offsets[example]; c < g.clique_offsets[example + 1]; ++c) {
            scope.clear();
            for (auto s = g.scope_offsets[c]; s < g.scope_offsets[c + 1]; ++s)
                if (g.labels(g.scopes[s]) > 1)
                    scope.push_back(static_cast<std::int32_t>(g.scopes[s] - first_));
            for (const auto a : scope)
                for (const auto b : scope)
                    if (a != b) adjacent_[a].push_back(b);
        }
        for (auto& all : adjacent_) {
            std::sort(all.begin(), all.end());
            all.erase(std::unique(all.begin(), all.end()), all.end());
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
        const double size = weight(v);
        const auto fill = static_cast<double>(fill_[v]);
        queue_.push(by_fill_ ? Entry{fill, size, v, ++stamp_[v]} : Entry{size, 0.0, v, ++stamp_[v]});
    }

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
            work += by_fill_ ? join_counting(a, all) : join(a, all);
        }
        for (const auto a : all) {
            if (by_fill_) fill_[a] -= static_cast<std::int64_t>(adjacent_[a].size()) - degree;
            erase(adjacent_[a], v);
        }
        for (const auto a : dirty_) {
            is_dirty_[a] = false;
            if (!gone_[a]) push(a);
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

    std::int64_t first_;
    bool by_fill_;
    std::vector<Neighbours> adjacent_;
    Indices fill_;
    std::vector<double> log_labels_;
    std::vector<std::uint32_t> stamp_;
    std::vector<char> gone_, is_dirty_;
    Neighbours dirty_, missing_;
    std::priority_queue<Entry> queue_;
};

// The clusters of all examples; places are counted over the batch.
struct Tree {
    Indices cluster_offsets{0}, scope_offsets{0}, scopes, residual, parent, factor_offsets{0}, factors;
    std::vector<double> cells, streamed;  // per example: all tables; the most alive at once

    void add(const Graph& g, std::size_t example, const Elimination& done) {
        const std::size_t n = done.size();
        const std::int64_t first = g.variable_offsets[example];
        const auto begin = static_cast<std::int64_t>(residual.size());
        std::vector<std::int32_t> position(n), cluster(n, -1), head;
        std::vector<char> ends(n, true);
        for (std::size_t k = 0; k < n; ++k) position[done.order[k]] = static_cast<std::int32_t>(k);
        for (const auto v : done.order) {  // a run starts at its head
            if (cluster[v] < 0) {
                cluster[v] = static_cast<std::int32_t>(head.size());
                head.push_back(v);
            }
            const std::int32_t p = up(done.neighbours(v), position);
            if (p < 0 || cluster[p] >= 0 || done.neighbours(v).size() != done.neighbours(p).size() + 1)
                continue;
            cluster[p] = cluster[v];
            ends[v] = false;
        }
        std::vector<std::int64_t> number(head.size());
        std::vector<std::int32_t> run(head.size());
        Indices tops;
        for (const auto v : done.order) {
            ++run[cluster[v]];
            if (!ends[v]) continue;
            number[cluster[v]] = static_cast<std::int64_t>(residual.size());
            append(done, head[cluster[v]], run[cluster[v]], first, position);
            tops.push_back(up(done.neighbours(v), position));
        }
        for (const auto p : tops) parent.push_back(p < 0 ? -1 : number[cluster[p]]);
        cluster_offsets.push_back(static_cast<std::int64_t>(residual.size()));
        assign(g, example, position, cluster, number, begin);
        measure(g, begin);
    }

private:
    static std::int32_t up(const Neighbours& all, const std::vector<std::int32_t>& position) {
        const auto p = std::min_element(all.begin(), all.end(), [&](auto a, auto b) {
            return position[a] < position[b];
        });
        return p == all.end() ? -1 : *p;
    }

    void append(const Elimination& done, std::int32_t head, std::int64_t run, std::int64_t first,
                const std::vector<std::int32_t>& position) {
        Neighbours scope = done.neighbours(head);
        scope.push_back(head);
        std::sort(scope.begin(), scope.end(), [&](auto a, auto b) { return position[a] < position[b]; });
        for (const auto v : scope) scopes.push_back(first + v);
        scope_offsets.push_back(static_cast<std::int64_t>(scopes.size()));
        residual.push_back(run);
    }

    // Every clique belongs to the cluster where the first of its variables is eliminated.
    void assign(const Graph& g, std::size_t example, const std::vector<std::int32_t>& position,
                const std::vector<std::int32_t>& cluster, const Indices& number, std::int64_t begin) {
        const std::int64_t from = g.clique_offsets[example], to = g.clique_offsets[example + 1];
        Indices owner(to - from), count(residual.size() - begin + 1);
        for (auto c = from; c < to; ++c) {
            std::int64_t chosen = g.scopes[g.scope_offsets[c]] - g.variable_offsets[example];
            bool found = false;
            for (auto s = g.scope_offsets[c]; s < g.scope_offsets[c + 1]; ++s) {
                const std::int64_t v = g.scopes[s] - g.variable_offsets[example];
                if (g.labels(g.scopes[s]) == 1) continue;
                if (!found || position[v] < position[chosen]) chosen = v;
                found = true;
            }
            owner[c - from] = number[cluster[chosen]] - begin;
            ++count[owner[c - from] + 1];
        }
        const auto base = static_cast<std::int64_t>(factors.size());
        for (std::size_t i = 1; i < count.size(); ++i) {
            count[i] += count[i - 1];
            factor_offsets.push_back(base + count[i]);
        }
        factors.resize(base + (to - from));
        for (auto c = from; c < to; ++c) factors[base + count[owner[c - from]]++] = c;
    }

    void measure(const Graph& g, std::int64_t begin) {
        double sum = 0.0, most = 0.0, alive = 0.0;
        std::vector<double> waiting(residual.size() - begin);  // messages to each cluster
        for (auto i = begin; i < static_cast<std::int64_t>(residual.size()); ++i) {
            double table = 1.0, message = 1.0;
            for (auto s = scope_offsets[i]; s < scope_offsets[i + 1]; ++s) {
                const auto labels = static_cast<double>(g.labels(scopes[s]));
                table *= labels;
                if (s >= scope_offsets[i] + residual[i]) message *= labels;
            }
            sum += table + message;
            alive += table + message;
            most = std::max(most, alive);
            alive -= table + waiting[i - begin];
            if (parent[i] >= 0) waiting[parent[i] - begin] += message;
        }
        cells.push_back(sum);
        streamed.push_back(most);
    }
};

// Which clusters hang from each.
std::pair<Indices, Indices> children_of(const Indices& parent) {
    Indices offsets(parent.size() + 1), children;
    for (const auto p : parent)
        if (p >= 0) ++offsets[p + 1];
    for (std::size_t i = 0; i < parent.size(); ++i) offsets[i + 1] += offsets[i];
    children.resize(offsets.back());
    Indices next(offsets.begin(), offsets.end() - 1);
    for (std::size_t i = 0; i < parent.size(); ++i)
        if (parent[i] >= 0) children[next[parent[i]]++] = static_cast<std::int64_t>(i);
    return {std::move(offsets), std::move(children)};
}

}  // namespace

static const Binding binding([](nb::module_& m) {
    // The clique tree, or as far as the first table of more than 2^limit cells: then `stuck` holds
    // that table's variables, and no array describes a tree.
    m.def("clique_tree_plan", [](Input<std::int64_t> state_offsets, Input<std::int64_t> variable_offsets,
                                 Input<std::int64_t> clique_offsets, Input<std::int64_t> scope_offsets,
                                 Input<std::int64_t> scopes, bool by_fill, double limit) {
        const Graph g{state_offsets.data(), variable_offsets.data(), clique_offsets.data(),
                      scope_offsets.data(), scopes.data(), variable_offsets.size() - 1};
        Tree tree;
        Indices stuck;
        std::pair<Indices, Indices> down;
        bool going = true;
        {
            nb::gil_scoped_release release;
            for (std::size_t e = 0; e < g.examples && going && stuck.empty(); ++e) {
                Elimination elimination(g, e, by_fill);
                going = elimination.run(limit);
                if (!going) break;
                if (elimination.complete) {
                    tree.add(g, e, elimination);
                    continue;
                }
                const std::int32_t v = elimination.order.back();
                stuck.push_back(g.variable_offsets[e] + v);
                for (const auto a : elimination.neighbours(v)) stuck.push_back(g.variable_offsets[e] + a);
            }
            if (going && stuck.empty()) down = children_of(tree.parent);
        }
        if (!going) throw nb::python_error();
        return nb::make_tuple(
            array_of(std::move(tree.cluster_offsets)), array_of(std::move(tree.scope_offsets)),
            array_of(std::move(tree.scopes)), array_of(std::move(tree.residual)),
            array_of(std::move(tree.parent)), array_of(std::move(down.first)),
            array_of(std::move(down.second)), array_of(std::move(tree.factor_offsets)),
            array_of(std::move(tree.factors)), array_of(std::move(tree.cells)),
            array_of(std::move(tree.streamed)), array_of(std::move(stuck)));
    });
});

}  // namespace chordal
