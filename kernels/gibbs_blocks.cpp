// Blocks of variables for Gibbs sampling: colours, and forests that are drawn at once (forest_block.hpp).
//
// Colours: variables that share a clique differ; each takes the first colour it may.
//
// Forests: a variable joins the first block in which its neighbours (variables that share a clique
// with it) belong to different trees, so that no loop is closed. If there are few blocks, each is then
// extended by variables of the others, from the last to the first, as long as it remains a forest:
// on a grid two trees cover all and most of each other. Two variables of a block that share a clique
// are parent and child; the other variables of that clique are fixed while the block is drawn.
//
// References: Hamze and de Freitas (2004), From fields to trees; Gonzalez et al. (2011), Parallel
// Gibbs sampling: from colored fields to thin junction trees.
#include <numeric>

#include "forest_block.hpp"
#include "forest_blocks.hpp"

namespace chordal {
namespace {

// Calls f(u) for each other variable of each clique of v.
template <class F>
void each_neighbour(const Topology& g, const CliquesOf& of, std::int64_t v, F f) {
    for (auto c = of.begin(v); c != of.end(v); ++c)
        for (auto s = g.scope_offsets[*c]; s < g.scope_offsets[*c + 1]; ++s)
            if (g.scopes[s] != v) f(g.scopes[s]);
}

class DisjointSets {
public:
    explicit DisjointSets(std::size_t n) : up_(n) { std::iota(up_.begin(), up_.end(), 0); }
    std::int64_t root(std::int64_t v) {
        while (up_[v] != v) v = up_[v] = up_[up_[v]];
        return v;
    }
    void join(std::int64_t a, std::int64_t b) { up_[root(a)] = root(b); }

private:
    std::vector<std::int64_t> up_;
};

constexpr std::size_t kFewBlocks = 4;

class Forests : public ForestBlocks {
public:
    Forests(const Topology& g, const CliquesOf& of)
        : g_(g), of_(of), trees_(g.variables), seen_(g.variables, -1) {
        const auto variables = static_cast<std::int64_t>(g.variables);
        std::vector<std::int64_t> block(g.variables), closes;  // [blocks]: the last one refused
        for (std::int64_t v = 0; v < variables; ++v) {
            const auto before = [&](std::int64_t u) { return u < v; };
            each_loop(v, before, [&](std::int64_t u) { closes[block[u]] = v; });
            block[v] = std::find_if(closes.begin(), closes.end(),
                                    [&](std::int64_t by) { return by != v; }) - closes.begin();
            if (block[v] == static_cast<std::int64_t>(closes.size())) closes.push_back(-1);
            join(v, [&](std::int64_t u) { return u < v && block[u] == block[v]; });
        }
        std::vector<std::vector<std::int64_t>> members(closes.size());
        for (std::int64_t v = 0; v < variables; ++v) members[block[v]].push_back(v);
        inside_.assign(g.variables, 0);
        for (auto& some : members) {
            for (const auto v : some) inside_[v] = 1;
            if (members.size() > 1 && members.size() <= kFewBlocks) extend(some);
            put_in_order(some);
        }
    }

private:
    // Calls f(u) where the neighbour u, one of those asked for, is in a tree of another before it.
    template <class Asked, class F>
    void each_loop(std::int64_t v, Asked asked, F f) {
        ++visit_;
        each_neighbour(g_, of_, v, [&](std::int64_t u) {
            if (!asked(u)) return;
            std::int64_t& by = seen_[trees_.root(u)];
            if (by == visit_) f(u);
            by = visit_;
        });
    }

    template <class Asked>
    void join(std::int64_t v, Asked asked) {
        each_neighbour(g_, of_, v, [&](std::int64_t u) {
            if (asked(u)) trees_.join(u, v);
        });
    }

    void extend(std::vector<std::int64_t>& some) {
        trees_ = DisjointSets(g_.variables);
        const auto inside = [&](std::int64_t u) { return inside_[u] == 1; };
        for (const auto v : some) join(v, inside);
        for (auto v = static_cast<std::int64_t>(g_.variables); v-- > 0;) {
            if (inside_[v]) continue;
            bool closes = false;
            each_loop(v, inside, [&](std::int64_t) { closes = true; });
            if (closes) continue;
            join(v, inside);
            inside_[v] = 1;
            some.push_back(v);
        }
    }

    // Appends the block from its roots on, and forgets it.
    void put_in_order(const std::vector<std::int64_t>& some) {
        for (const auto root : some) {
            if (!inside_[root]) continue;
            std::size_t next = order.size();
            const auto reach = [&](std::int64_t v, std::int64_t from) {
                inside_[v] = 0;
                order.push_back(v);
                parent.push_back(from);
            };
            for (reach(root, -1); next < order.size(); ++next) {
                const std::int64_t v = order[next];
                each_neighbour(g_, of_, v, [&](std::int64_t u) {
                    if (inside_[u]) reach(u, v);
                });
            }
        }
        offsets.push_back(static_cast<std::int64_t>(order.size()));
    }

    const Topology& g_;
    const CliquesOf of_;
    DisjointSets trees_;
    std::vector<std::int64_t> seen_;  // [roots] the visit in which a tree was last met
    std::vector<std::uint8_t> inside_;
    std::int64_t visit_ = 0;
};

}  // namespace

static const Binding binding([](nb::module_& m) {
    m.def(
        "greedy_colours",
        [](const BoundTopology& g, const Incidence& incidence) {
            std::vector<std::int32_t> colour(g.variables);
            {
                GilReleased release;
                Indices taken;  // by which variable's neighbours a colour was last seen
                for (std::int64_t v = 0; v < static_cast<std::int64_t>(g.variables); ++v) {
                    each_neighbour(g, incidence, v, [&](std::int64_t u) {
                        if (u < v) taken[colour[u]] = v;
                    });
                    std::size_t first = 0;
                    while (first < taken.size() && taken[first] == v) ++first;
                    if (first == taken.size()) taken.push_back(-1);
                    colour[v] = static_cast<std::int32_t>(first);
                }
            }
            return array_of(std::move(colour));
        },
        nb::arg("topology"), nb::arg("incidence"),
        "A colour for each variable; those of a colour share no clique.");
    nb::class_<ForestBlocks>(m, "ForestBlocks", "Blocks of variables that form forests.")
        .def("__len__", [](const ForestBlocks& self) { return self.order.size(); })
        .def_prop_ro("order", [](const ForestBlocks& self) { return inside(self.order); },
                     "Variables block by block, parents before children.")
        .def_prop_ro("parent", [](const ForestBlocks& self) { return inside(self.parent); },
                     "The parent of each of them, -1 for a root.")
        .def_prop_ro("offsets", [](const ForestBlocks& self) { return inside(self.offsets); },
                     "Where each block begins.");
    m.def(
        "greedy_forests",
        [](const BoundTopology& g, const Incidence& incidence) {
            GilReleased release;
            return ForestBlocks(Forests(g, incidence));
        },
        nb::arg("topology"), nb::arg("incidence"));
    // uniform [sweeps * order]; labels [variables] is where the chain is.
    m.def(
        "gibbs_forests",
        [](const BoundScores& scores, const Incidence& incidence, const ForestBlocks& blocks,
           Input<double> uniform, Output<std::int32_t> labels) {
            GilReleased release;
            ForestBlock forest(scores, incidence, scores.unary, scores.tables);
            const double *next = uniform.data(), *end = next + uniform.size();
            while (next < end)
                for_blocks(blocks.offsets.data(), blocks.blocks(), [&](std::int64_t at, std::size_t n) {
                    forest.draw(blocks.order.data() + at, blocks.parent.data() + at, n, next,
                                labels.data());
                    next += n;
                });
        },
        nb::arg("scores"), nb::arg("incidence"), nb::arg("blocks"), nb::arg("uniform"),
        nb::arg("labels"));
});

}  // namespace chordal
