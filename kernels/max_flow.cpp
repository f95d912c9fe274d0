// The best labelling of models with two labels that like to be alike, by a minimum cut.
//
// A clique with scores s_ab of its labels is submodular if w = s_00 + s_11 - s_01 - s_10 >= 0. Up to a
// constant, its negative score is then
//
//   α x_i + β x_j + w/2 [x_i ≠ x_j],   α = (s_00 - s_10 + s_01 - s_11) / 2,
//                                      β = (s_00 - s_01 + s_10 - s_11) / 2
//
// so the labels x that cut a network of capacities w/2 with t_v = u_v(0) - u_v(1) + Σ α + Σ β least
// score most; label 0 is the source's side.
//
// Scores of -inf come first: labels that no partner allows are struck out (arc consistency), which
// fixes variables, as a single label does. Between variables that keep both labels, -inf is left at
// s_01 or s_10 alone, if the clique is submodular: an unlimited arc. All of them at 0 is then allowed.
//
// Reference: Kolmogorov and Zabih (2004), What energy functions can be minimized via graph cuts?
#include "max_flow.hpp"

namespace chordal {
namespace {

constexpr double kForbidden = -std::numeric_limits<double>::infinity();
// A w below zero by no more than this share of the scores is rounding, and counts as zero.
constexpr double kRounding = 1e-14;

class BinaryModel {
public:
    BinaryModel(const Frame& g, const std::int64_t* clique_offsets, const double* unary,
                const double* tables, std::size_t cells)
        : g_(g), clique_offsets_(clique_offsets), unary_(unary), tables_(tables), cells_(cells),
          allowed_(g.variables) {}

    // Fills `allowed`, a bit for each label: what the scores of -inf leave.
    void strike_out() {
        for (std::size_t v = 0; v < g_.variables; ++v) {
            patience_.spend(8);
            const double* u = unary_ + g_.state_offsets[v];
            const bool two = g_.labels(static_cast<std::int64_t>(v)) == 2;
            allowed_[v] = static_cast<std::uint8_t>((u[0] > kForbidden) + 2 * (two && u[1] > kForbidden));
        }
        if (std::find(tables_, tables_ + cells_, kForbidden) == tables_ + cells_) return;
        const Members members(g_);
        std::vector<std::int64_t> queue(g_.cliques);
        std::vector<std::uint8_t> queued(g_.cliques, 1);
        for (std::size_t c = 0; c < g_.cliques; ++c) queue[c] = static_cast<std::int64_t>(c);
        while (!queue.empty()) {
            const std::int64_t c = queue.back();
            queue.pop_back();
            queued[c] = 0;
            patience_.spend(64);
            for (auto s = g_.scope_offsets[c]; s < g_.scope_offsets[c + 1]; ++s) {
                const std::int64_t v = g_.scopes[s];
                const std::uint8_t left = supported(c, s);
                if (left == allowed_[v]) continue;
                allowed_[v] = left;
                for (auto m = members.begin(v); m != members.end(v); ++m)
                    if (!queued[m->clique]) {
                        queued[m->clique] = 1;
                        queue.push_back(m->clique);
                    }
            }
        }
    }

    // The first clique that is not submodular where both ends are free; -1 if all are.
    std::int64_t refused() const {
        for (std::size_t c = 0; c < g_.cliques; ++c) {
            const auto k = static_cast<std::int64_t>(c);
            if (!is_edge(k) || !is_free(end(k, 0)) || !is_free(end(k, 1))) continue;
            const double* s = table(k);
            if (s[0] == kForbidden || s[3] == kForbidden) return k;
            if (s[1] == kForbidden || s[2] == kForbidden) continue;
            const double size = std::abs(s[0]) + std::abs(s[1]) + std::abs(s[2]) + std::abs(s[3]);
            if (!(s[0] + s[3] - s[1] - s[2] >= -kRounding * size)) return k;
        }
        return -1;
    }

    // Writes the best labels of one example.
    void solve(std::size_t example, std::int32_t* labels, double* feasible) const {
        const auto first = g_.variable_offsets[example], last = g_.variable_offsets[example + 1];
        for (auto v = first; v < last; ++v) {
            if (allowed_[v] == 0) *feasible = kForbidden;
            labels[v] = allowed_[v] == 2 ? 1 : 0;
        }
        if (*feasible == kForbidden) return;
        const auto c0 = clique_offsets_[example], c1 = clique_offsets_[example + 1];
        std::vector<double> terminal;
        CHORDAL_ISA::Patience patience(interrupted);
        enlarge(terminal, static_cast<std::size_t>(last - first), patience);
        for (auto v = first; v < last; ++v) {
            patience.spend(8);
            const double* u = unary_ + g_.state_offsets[v];
            if (is_free(v)) terminal[v - first] = u[0] - u[1];
        }
        double total = 0.0;
        for (auto c = c0; c < c1; ++c, patience.spend(16))
            total += add_terminals(c, labels, first, terminal.data());
        for (const double t : terminal) total += std::abs(t);
        const double scale = capacity_scale(total);
        FlowNetwork network(g_, first, last, c0, c1);
        for (std::int32_t v = 0; v < network.nodes(); ++v) {
            network.set_terminal(v, std::llrint(scale * terminal[v]));
            patience.spend(128);
            for (auto a = network.begin(v); a < network.end(v); ++a)
                if (network.clique(a) >= 0) set_capacities(network, a, c0 + network.clique(a), scale);
        }
        network.solve();
        for (auto v = first; v < last; ++v)
            if (is_free(v))
                labels[v] = !network.on_source_side(static_cast<std::int32_t>(v - first));
    }

private:
    const double* table(std::int64_t c) const {
        return tables_ + g_.table_offsets[g_.table_of_clique[c]];
    }
    bool is_edge(std::int64_t c) const { return g_.scope_offsets[c + 1] - g_.scope_offsets[c] == 2; }
    std::int64_t end(std::int64_t c, int side) const { return g_.scopes[g_.scope_offsets[c] + side]; }
    bool is_free(std::int64_t v) const { return allowed_[v] == 3; }

    // The labels of the variable at place s of the clique's scope that some partner allows.
    std::uint8_t supported(std::int64_t c, std::int64_t s) const {
        const double* score = table(c);
        const bool alone = !is_edge(c), second = s > g_.scope_offsets[c];
        const std::int64_t v = g_.scopes[s], u = alone ? v : g_.scopes[g_.scope_offsets[c] + !second];
        const std::int64_t row = alone ? 1 : second ? 1 : g_.labels(u);
        const std::int64_t column = second ? g_.labels(v) : 1;
        std::uint8_t left = 0;
        for (std::int64_t l = 0; l < g_.labels(v); ++l) {
            if (!(allowed_[v] >> l & 1)) continue;
            for (std::int64_t m = 0; m < (alone ? 1 : g_.labels(u)); ++m)
                if ((alone || (allowed_[u] >> m & 1)) && score[l * row + m * column] > kForbidden)
                    left |= static_cast<std::uint8_t>(1 << l);
        }
        return left;
    }

    // Adds a clique's α and β, or a row of its table where one end is fixed; returns its capacity.
    double add_terminals(std::int64_t c, const std::int32_t* labels, std::int64_t first,
                         double* terminal) const {
        const double* s = table(c);
        const std::int64_t i = end(c, 0);
        if (!is_edge(c)) {
            if (is_free(i)) terminal[i - first] += s[0] - s[1];
            return 0.0;
        }
        const std::int64_t j = end(c, 1), n = g_.labels(j);
        if (!is_free(i) || !is_free(j)) {
            if (is_free(i)) terminal[i - first] += s[labels[j]] - s[n + labels[j]];
            if (is_free(j)) terminal[j - first] += s[labels[i] * n] - s[labels[i] * n + 1];
            return 0.0;
        }
        const bool to_second = s[1] == kForbidden, to_first = s[2] == kForbidden;
        if (to_second || to_first) {  // α and β of the one arc that is not unlimited
            terminal[i - first] += to_first ? (to_second ? s[0] - s[3] : s[1] - s[3]) : s[0] - s[2];
            terminal[j - first] += to_first ? (to_second ? 0.0 : s[0] - s[1]) : s[2] - s[3];
            return 0.0;
        }
        terminal[i - first] += 0.5 * ((s[0] - s[2]) + (s[1] - s[3]));
        terminal[j - first] += 0.5 * ((s[0] - s[1]) + (s[2] - s[3]));
        return std::max((s[0] - s[1]) + (s[3] - s[2]), 0.0);
    }

    void set_capacities(FlowNetwork& network, std::int32_t a, std::int64_t c, double scale) const {
        const double* s = table(c);
        if (!is_free(end(c, 0)) || !is_free(end(c, 1))) return;
        const bool to_second = s[1] == kForbidden, to_first = s[2] == kForbidden;
        if (to_second || to_first) {
            network.set_capacity(a, to_second ? kUnlimited : 0, to_first ? kUnlimited : 0);
            return;
        }
        const double w = std::max((s[0] - s[1]) + (s[3] - s[2]), 0.0);
        const Capacity half = std::llrint(0.5 * scale * w);
        network.set_capacity(a, half, half);
    }

    const Frame& g_;
    const std::int64_t* clique_offsets_;
    const double* unary_;
    const double* tables_;
    std::size_t cells_;
    std::vector<std::uint8_t> allowed_;  // [variables]
    CHORDAL_ISA::Patience patience_{interrupted};
};

}  // namespace

static const Binding binding([](nb::module_& m) {
    // labels [variables] (none: only look at the scores); feasible [examples] becomes -inf where no
    // labelling is allowed. Returns the first clique that is not submodular, or -1.
    m.def(
        "max_flow_labels",
        [](const BoundScores& g, Output<std::int32_t> labels, Output<double> feasible) {
            std::int64_t refused = -1;
            {
                GilReleased release;
                BinaryModel model(g, g.clique_offsets, g.unary, g.tables,
                                  static_cast<std::size_t>(g.cells()));
                model.strike_out();
                refused = model.refused();
                for (std::size_t e = 0; e < g.examples && refused < 0 && labels.size(); ++e)
                    model.solve(e, labels.data(), feasible.data() + e);
            }
            return refused;
        },
        nb::arg("scores"), nb::arg("labels"), nb::arg("feasible"));
});

}  // namespace chordal
