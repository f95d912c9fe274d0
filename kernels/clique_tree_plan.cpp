// The clique tree that an elimination order makes of a graph, and the search for a good order.
//
// The graph with all the edges that elimination adds is chordal. Its maximal cliques are the clusters:
// v's neighbour p that goes first has N_v ⊆ {p} ∪ N_p, and where both are equal, p needs no cluster of
// its own. The cluster with the last of such a run of variables hangs from the cluster of that one's p,
// so that any two clusters' common variables lie in all clusters between them (a maximum-weight
// spanning tree of the cliques).
//
// Each cluster's variables come in the order of elimination: first the residual, those in no
// cluster nearer to the root, then the separator. Clusters come children first.
//
// A large example is first tried on a part of it: where tables grow too large in the neighbourhood
// of some variable, they do in the whole.
//
// A search takes the best of all rules and then of noisy ones, each of which ends as soon as it is
// worse than the best so far. An automatic one goes on for an eighth as many steps as the best tree has
// cells, or as a table may have, which is less than a tree takes to use once, and not at all where every
// tree is too large. A thorough one goes on for eight times as long, and where there is no tree yet,
// unless a clique of the graph itself is too large; kSteps are a few seconds. No clock is asked: the
// same graph, the same tree.
//
// Reference: Koller and Friedman (2009), Probabilistic graphical models, sections 9.4 and 10.4.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "clique_tree.hpp"
#include "elimination_order.hpp"

namespace chordal {
namespace {

constexpr double kSteps = 1 << 28;

// The clusters of all examples; places are counted over the batch.
struct Tree : PlannedTree {
    void add(const Topology& g, std::size_t example, const Elimination& done) {
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
        for (const auto v : scope) members.push_back(first + v);
        member_offsets.push_back(static_cast<std::int64_t>(members.size()));
        residual.push_back(run);
    }

    // Every clique belongs to the cluster where the first of its variables is eliminated.
    void assign(const Topology& g, std::size_t example, const std::vector<std::int32_t>& position,
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

    void measure(const Topology& g, std::int64_t begin) {
        double sum = 0.0, most = 0.0, alive = 0.0, sent = 0.0, widest = 0.0, longest = 0.0;
        std::vector<double> waiting(residual.size() - begin);  // messages to each cluster
        for (auto i = begin; i < static_cast<std::int64_t>(residual.size()); ++i) {
            double table = 1.0, message = 1.0;
            for (auto s = member_offsets[i]; s < member_offsets[i + 1]; ++s) {
                const auto labels = static_cast<double>(g.labels(members[s]));
                table *= labels;
                if (s >= member_offsets[i] + residual[i]) message *= labels;
            }
            sum += table + message;
            sent += message;
            widest = std::max(widest, table);
            longest = std::max(longest, message);
            alive += table + message;
            most = std::max(most, alive);
            alive -= table + waiting[i - begin];
            if (parent[i] >= 0) waiting[parent[i] - begin] += message;
        }
        cells.push_back(sum);
        streamed.push_back(most);
        messages.push_back(sent);
        largest.push_back(widest + longest);
    }
};

// Orders of one example; those of a large one are first tried on a part.
class Search {
public:
    Search(const Topology& g, std::size_t example, double limit)
        : g_(g), example_(example), limit_(limit), adjacent_(neighbours_of(g, example)),
          part_(part_of(adjacent_)) {}

    // The order by a rule, which may not be complete.
    Elimination by(Rule rule, std::uint64_t seed = 0,
                   double most = std::numeric_limits<double>::infinity()) const {
        if (!part_.empty()) {
            Elimination tried(g_, example_, rule, part_, seed);
            tried.run(limit_, most);
            if (!tried.complete) return tried;
        }
        Elimination tried(g_, example_, rule, adjacent_, seed);
        tried.run(limit_, most);
        return tried;
    }

    Elimination best(bool thorough) const {
        constexpr std::uint64_t kRules = 3;
        Elimination best = by(Rule::fill);
        CHORDAL_ISA::Patience between(interrupted);  // small graphs never ask on the way
        double steps = 0.0;
        for (std::uint64_t k = 1;; ++k) {
            const double most = best.complete ? best.cells : std::numeric_limits<double>::infinity();
            if (k >= kRules && steps >= patience(best, thorough)) break;
            const Rule rule = k < kRules ? static_cast<Rule>(k) : k % 2 ? Rule::weight : Rule::fill;
            Elimination next = by(rule, k < kRules ? 0 : k, most);
            steps += static_cast<double>(next.work);
            between.spend(1024 + 16 * next.work);
            if (next.complete && next.cells < most) best = std::move(next);
        }
        return best;
    }

private:
    double patience(const Elimination& best, bool thorough) const {
        if (!part_.empty()) return 0.0;
        if (!best.complete) return thorough && !is_bound_to(best) ? kSteps / 2.0 : 0.0;
        return std::min(thorough ? best.cells : std::min(best.cells, std::exp2(limit_)) / 8.0, kSteps);
    }

    // Whether the table that was too large is that of neighbours in the graph: no order avoids it.
    bool is_bound_to(const Elimination& stuck) const {
        Neighbours all = stuck.neighbours(stuck.order.back());
        insert(all, stuck.order.back());
        return std::all_of(all.begin(), all.end(), [&](std::int32_t v) {
            Neighbours others = all;
            erase(others, v);
            return std::includes(adjacent_[v].begin(), adjacent_[v].end(), others.begin(), others.end());
        });
    }

    const Topology& g_;
    std::size_t example_;
    double limit_;
    std::vector<Neighbours> adjacent_, part_;
};

// Adds the tree of an example, or says where it got stuck.
void plan_example(const Topology& g, std::size_t example, Rule rule, double limit, Tree& tree) {
    const Search search(g, example, limit);
    const Elimination found =
        rule < Rule::automatic ? search.by(rule) : search.best(rule == Rule::search);
    if (found.complete) return tree.add(g, example, found);
    const std::int32_t v = found.order.back();
    tree.stuck.push_back(g.variable_offsets[example] + v);
    for (const auto a : found.neighbours(v))
        tree.stuck.push_back(g.variable_offsets[example] + a);
}

}  // namespace

static const Binding binding([](nb::module_& m) {
    using Array = Input<std::int64_t>;
    const auto copied = [](const Array& x) { return Indices(x.data(), x.data() + x.size()); };
    nb::class_<PlannedTree>(m, "CliqueTree", "Clusters of a structure's variables, children first.")
        .def("__init__",
             [copied](PlannedTree* self, const Array& cluster_offsets, const Array& member_offsets,
                      const Array& members, const Array& residual, const Array& parent,
                      const Array& factor_offsets, const Array& factors) {
                 new (self) PlannedTree();
                 self->cluster_offsets = copied(cluster_offsets);
                 self->member_offsets = copied(member_offsets);
                 self->members = copied(members);
                 self->residual = copied(residual);
                 self->parent = copied(parent);
                 self->factor_offsets = copied(factor_offsets);
                 self->factors = copied(factors);
                 self->finish();
             },
             nb::kw_only(), nb::arg("cluster_offsets"), nb::arg("member_offsets"),
             nb::arg("members"), nb::arg("residual"), nb::arg("parent"), nb::arg("factor_offsets"),
             nb::arg("factors"))
        .def("__len__", &PlannedTree::size)
        .def_prop_ro("member_offsets",
                     [](const PlannedTree& self) { return inside(self.member_offsets); })
        .def_prop_ro("members", [](const PlannedTree& self) { return inside(self.members); },
                     "The variables of each cluster.")
        .def_prop_ro("residual", [](const PlannedTree& self) { return inside(self.residual); },
                     "How many of them, the first ones, are in no cluster nearer to the root.")
        .def_prop_ro("parent", [](const PlannedTree& self) { return inside(self.parent); },
                     "The parent of each cluster, -1 for a root.")
        .def_prop_ro("factor_offsets",
                     [](const PlannedTree& self) { return inside(self.factor_offsets); })
        .def_prop_ro("factors", [](const PlannedTree& self) { return inside(self.factors); },
                     "The cliques of each cluster.")
        .def_prop_ro("cells", [](const PlannedTree& self) { return inside(self.cells); },
                     "Cells of all tables and messages of each example.")
        .def_prop_ro("streamed", [](const PlannedTree& self) { return inside(self.streamed); },
                     "The most cells at once of each example, if none is kept.")
        .def_prop_ro("messages", [](const PlannedTree& self) { return inside(self.messages); },
                     "Cells of all messages of each example.")
        .def_prop_ro("largest", [](const PlannedTree& self) { return inside(self.largest); },
                     "Cells of the largest table and the largest message of each example.")
        .def_prop_ro("stuck", [](const PlannedTree& self) { return inside(self.stuck); },
                     "The variables of the table that was too large; else empty.");
    // rule: the place in Rule. The tree, or as far as the first table of more than 2^limit cells.
    m.def(
        "clique_tree_plan",
        [](const BoundTopology& g, int rule, double limit) {
            Tree tree;
            {
                GilReleased release;
                for (std::size_t e = 0; e < g.examples && tree.stuck.empty(); ++e)
                    plan_example(g, e, static_cast<Rule>(rule), limit, tree);
                if (tree.stuck.empty()) tree.finish();
            }
            return PlannedTree(std::move(tree));
        },
        nb::arg("topology"), nb::arg("rule"), nb::arg("limit"));
});

}  // namespace chordal
