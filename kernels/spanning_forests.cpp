// Forests that together contain every clique, each of them maximal; their shares are ρ_c.
//
// A set of cliques is a forest if variables and cliques form no loop. Kruskal's greedy algorithm takes
// cliques that no forest has so far before others, and among equals in random order: a clique joins if
// its variables lie in different trees. What lies on no loop is in every forest, ρ_c = 1. For edges
// these are spanning trees of every component. Forests are added until every clique is in one, and
// there are at least as many as asked for.
//
// Reference: Wainwright, Jaakkola and Willsky (2005), A new class of upper bounds on the log partition
// function (random spanning trees).
#include <algorithm>
#include <numeric>

#include "patience.hpp"
#include "spanning_forests.hpp"

namespace chordal {
namespace {

// A small generator with a state of 64 bits (splitmix64).
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t below(std::uint64_t n) { return next() % n; }

private:
    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return z ^ (z >> 31);
    }
    std::uint64_t state_;
};

class Kruskal {
public:
    Kruskal(const std::int64_t* scope_offsets, const std::int64_t* scopes, std::int64_t first_clique,
            std::int64_t cliques, std::int64_t first_variable, std::int64_t variables)
        : scope_offsets_(scope_offsets + first_clique),
          scopes_(scopes),
          first_variable_(first_variable),
          root_(variables),
          order_(cliques),
          times_(cliques, 0) {
        std::iota(order_.begin(), order_.end(), 0);
    }

    // Appends a flag per clique.
    void add_forest(Random& random, std::vector<std::uint8_t>& flags) {
        for (std::size_t k = order_.size(); k > 1; --k)
            std::swap(order_[k - 1], order_[random.below(k)]);
        std::stable_sort(order_.begin(), order_.end(),
                         [&](std::int64_t a, std::int64_t b) { return times_[a] < times_[b]; });
        std::iota(root_.begin(), root_.end(), 0);
        const std::size_t first = flags.size();
        flags.resize(first + order_.size(), 0);
        for (const std::int64_t c : order_) {
            patience_.spend(64);
            if (!joins(c)) continue;
            flags[first + static_cast<std::size_t>(c)] = 1;
            covered_ += times_[c]++ == 0;
        }
        ++forests_;
    }
    bool covered() const { return covered_ == static_cast<std::int64_t>(order_.size()); }
    bool one_is_enough() const { return covered() && forests_ == 1; }
    std::int64_t forests() const { return forests_; }
    double share(std::size_t c) const {
        return static_cast<double>(times_[c]) / static_cast<double>(forests_);
    }

private:
    bool joins(std::int64_t c) {
        met_.clear();
        for (auto s = scope_offsets_[c]; s < scope_offsets_[c + 1]; ++s)
            met_.push_back(find(scopes_[s] - first_variable_));
        std::sort(met_.begin(), met_.end());
        if (std::adjacent_find(met_.begin(), met_.end()) != met_.end()) return false;
        for (const std::int64_t v : met_) root_[v] = met_.front();
        return true;
    }
    std::int64_t find(std::int64_t v) {
        while (root_[v] != v) v = root_[v] = root_[root_[v]];
        return v;
    }

    const std::int64_t *scope_offsets_, *scopes_;
    std::int64_t first_variable_, covered_ = 0, forests_ = 0;
    std::vector<std::int64_t> root_, order_, met_;
    std::vector<std::int64_t> times_;
    CHORDAL_ISA::Patience patience_{interrupted};
};

}  // namespace

static const Binding binding([](nb::module_& m) {
    nb::class_<SpanningForests>(m, "SpanningForests",
                                "Forests that together contain every clique.")
        .def_prop_ro("n_forests", [](const SpanningForests& self) { return inside(self.n_forests); },
                     "Of each example.")
        .def_prop_ro("appearance",
                     [](const SpanningForests& self) { return inside(self.appearance); },
                     "In which share of its example's forests each clique is.")
        .def_prop_ro("flags", [](const SpanningForests& self) { return inside(self.flags); },
                     "For each example and forest, whether each clique is in it.");
    m.def(
        "spanning_forests",
        [](const BoundTopology& t, std::int64_t at_least, std::uint64_t seed) {
            SpanningForests found{Indices(t.examples), std::vector<double>(t.cliques), {}};
            {
                GilReleased release;
                Random random(seed);
                for (std::size_t e = 0; e < t.examples; ++e) {
                    const auto v0 = t.variable_offsets[e], v1 = t.variable_offsets[e + 1];
                    const auto c0 = t.clique_offsets[e], c1 = t.clique_offsets[e + 1];
                    Kruskal kruskal(t.scope_offsets, t.scopes, c0, c1 - c0, v0, v1 - v0);
                    do {
                        kruskal.add_forest(random, found.flags);
                    } while (!kruskal.one_is_enough() &&
                             !(kruskal.covered() && kruskal.forests() >= at_least));
                    found.n_forests[e] = kruskal.forests();
                    for (auto c = c0; c < c1; ++c)
                        found.appearance[c] = kruskal.share(static_cast<std::size_t>(c - c0));
                }
            }
            return found;
        },
        nb::arg("topology"), nb::arg("at_least"), nb::arg("seed"));
});

}  // namespace chordal
