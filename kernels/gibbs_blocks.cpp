// Blocks of variables for Gibbs sampling: colours, forests, and draws of a whole forest at once.
//
// Colours: variables that share a clique differ; each takes the first colour it may.
//
// Forests: a variable joins the first block in which its neighbours (variables that share a clique
// with it) belong to different trees, so that no loop is closed. If there are few blocks, each is then
// extended by variables of the others, from the last to the first, as long as it remains a forest:
// on a grid two trees cover all and most of each other. Two variables of a block that share a clique
// are parent and child; the other variables of that clique are fixed while the block is drawn.
//
//   φ_v(l) = u_v(l) + Σ_{c ∋ v, no other of the block in c} table_c(l, y) + Σ_{w child of v} m_w(l)
//   m_w(l) = log Σ_k exp(φ_w(k) + table_{wv}(k, l, y))                  (leaves to roots)
//   P(y_w = k | y_v) ∝ exp(φ_w(k) + table_{wv}(k, y_v, y))              (roots to leaves)
//
// All in logarithms: scores of any size. Where no labels of a tree are allowed, because others of the
// chain's present labelling are not, they stay as they are.
//
// References: Hamze and de Freitas (2004), From fields to trees; Gonzalez et al. (2011), Parallel
// Gibbs sampling: from colored fields to thin junction trees.
#include <numeric>

#include "label_scores.hpp"

namespace chordal {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

// Calls f(u) for each other variable of each clique of v.
template <class F>
void each_neighbour(const Cliques& g, const CliquesOf& of, std::int64_t v, F f) {
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

class Forest {
public:
    Forest(const Cliques& g, const CliquesOf& of, const double* unary, const double* tables)
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
        for (std::size_t k = 0; k < n; ++k) inside_[order[k]] = 1;
        for (std::size_t k = 0; k < n; ++k) start(order[k], y);
        pairs_.resize(std::max(pairs_.size(), n));
        for (std::size_t k = n; k-- > 0;) {
            if (parent[k] < 0) continue;
            pairs_[k] = pair_of(order[k], parent[k], y);
            send(order[k], parent[k], pairs_[k]);
        }
        for (std::size_t k = 0; k < n; ++k) take(order[k], parent[k], pairs_[k], uniform[k], y);
        for (std::size_t k = 0; k < n; ++k) inside_[order[k]] = 0;
    }

private:
    struct Pair {
        std::int64_t base, child, parent;  // the cell of labels 0 and 0, and the two strides
    };

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
            Pair pair{0, 0, 0};
            bool found = false;
            for (auto s = g_.scope_offsets[*c]; s < g_.scope_offsets[*c + 1]; ++s) {
                const std::int64_t u = g_.scopes[s], n = g_.labels(u);
                found |= u == p;
                pair.base = pair.base * n + (u == v || u == p ? 0 : y[u]);
                pair.child = u == v ? 1 : pair.child * n;
                pair.parent = u == p ? 1 : pair.parent * n;
            }
            if (!found) continue;
            pair.base += g_.table_offsets[g_.table_of_clique[*c]];
            return pair;
        }
    }

    // Fills weight_ with exp(φ_v + table along the child's axis - highest); the highest is returned.
    double weigh(std::int64_t v, const double* table, std::int64_t stride, double* total) {
        const double* phi = phi_.data() + g_.state_offsets[v];
        const std::int64_t n = g_.labels(v);
        double highest = kNone;
        for (std::int64_t l = 0; l < n; ++l) {
            weight_[l] = table ? phi[l] + table[l * stride] : phi[l];
            highest = std::max(highest, weight_[l]);
        }
        *total = 0.0;
        if (highest == kNone) return kNone;
        for (std::int64_t l = 0; l < n; ++l)
            *total += weight_[l] = weight_[l] == highest ? 1.0 : std::exp(weight_[l] - highest);
        return highest;
    }

    void send(std::int64_t v, std::int64_t p, const Pair& pair) {
        double* to = phi_.data() + g_.state_offsets[p];
        for (std::int64_t l = 0; l < g_.labels(p); ++l) {
            double total = 0.0;
            const double highest =
                weigh(v, tables_ + pair.base + l * pair.parent, pair.child, &total);
            to[l] += highest == kNone ? kNone : highest + std::log(total);
        }
    }

    void take(std::int64_t v, std::int64_t p, const Pair& pair, double uniform, std::int32_t* y) {
        double total = 0.0;
        const double* table = p < 0 ? nullptr : tables_ + pair.base + y[p] * pair.parent;
        const double highest = weigh(v, table, pair.child, &total);
        if (highest != kNone)
            y[v] = static_cast<std::int32_t>(place_of(weight_.data(), g_.labels(v), total, uniform));
    }

    const Cliques& g_;
    const CliquesOf of_;
    const double* unary_;
    const double* tables_;
    std::vector<std::uint8_t> inside_;  // [variables] of the block
    std::vector<Pair> pairs_;           // of each place in the block
    std::vector<double> phi_;           // [states]
    std::vector<double> weight_;        // of one variable's labels
};

constexpr std::size_t kFewBlocks = 4;

// Blocks of variables that form forests, each variable in at least one.
class Forests {
public:
    std::vector<std::int64_t> order;   // block by block, parents before children
    std::vector<std::int64_t> parent;  // [order] a variable, -1 for a root
    std::vector<std::int64_t> offsets{0};

    Forests(const Cliques& g, const CliquesOf& of)
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

    const Cliques& g_;
    const CliquesOf of_;
    DisjointSets trees_;
    std::vector<std::int64_t> seen_;  // [roots] the visit in which a tree was last met
    std::vector<std::uint8_t> inside_;
    std::int64_t visit_ = 0;
};

}  // namespace

static const Binding binding([](nb::module_& m) {
    // colour [variables].
    m.def("greedy_colours", [](CHORDAL_CLIQUE_ARGUMENTS, Input<std::int64_t> cliques_offsets,
                               Input<std::int64_t> cliques_of, Output<std::int32_t> colour) {
        nb::gil_scoped_release release;
        const Cliques g = CHORDAL_CLIQUES;
        const CliquesOf of{cliques_offsets.data(), cliques_of.data()};
        std::vector<std::int64_t> taken;  // by which variable's neighbours a colour was last seen
        for (std::int64_t v = 0; v < static_cast<std::int64_t>(g.variables); ++v) {
            each_neighbour(g, of, v, [&](std::int64_t u) {
                if (u < v) taken[colour.data()[u]] = v;
            });
            std::size_t first = 0;
            while (first < taken.size() && taken[first] == v) ++first;
            if (first == taken.size()) taken.push_back(-1);
            colour.data()[v] = static_cast<std::int32_t>(first);
        }
    });
    // (order, parent, offsets) of the blocks.
    m.def("greedy_forests", [](CHORDAL_CLIQUE_ARGUMENTS, Input<std::int64_t> cliques_offsets,
                               Input<std::int64_t> cliques_of) {
        const Cliques g = CHORDAL_CLIQUES;
        Forests forests = [&] {
            nb::gil_scoped_release release;
            return Forests(g, {cliques_offsets.data(), cliques_of.data()});
        }();
        return nb::make_tuple(array_of(std::move(forests.order)), array_of(std::move(forests.parent)),
                              array_of(std::move(forests.offsets)));
    });
    // uniform [sweeps * order]; labels [variables] is where the chain is.
    m.def("gibbs_forests", [](CHORDAL_CLIQUE_ARGUMENTS, Input<std::int64_t> cliques_offsets,
                              Input<std::int64_t> cliques_of, Input<std::int64_t> order,
                              Input<std::int64_t> parent, Input<std::int64_t> offsets,
                              Input<double> unary, Input<double> tables, Input<double> uniform,
                              Output<std::int32_t> labels) {
        bool stopped = false;
        {
            nb::gil_scoped_release release;
            const Cliques g = CHORDAL_CLIQUES;
            Forest forest(g, {cliques_offsets.data(), cliques_of.data()}, unary.data(),
                          tables.data());
            std::size_t work = 0;
            for (std::size_t at = 0; at < uniform.size() && !stopped;)
                for (std::size_t b = 0; b + 1 < offsets.size() && !stopped; ++b) {
                    const std::int64_t begin = offsets.data()[b];
                    const auto n = static_cast<std::size_t>(offsets.data()[b + 1] - begin);
                    forest.draw(order.data() + begin, parent.data() + begin, n, uniform.data() + at,
                                labels.data());
                    at += n;
                    work += n;
                    if (work > (std::size_t{1} << 18)) {
                        work = 0;
                        stopped = interrupted();
                    }
                }
        }
        if (stopped) throw nb::python_error();
    });
});

}  // namespace chordal
