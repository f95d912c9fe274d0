// The best labelling of forests of edges, and its score.
//
//   b_v = u_v + Σ m_e over edges e to children
//   m_e(i) = max_j [M_e(i, j) + b_v(j)]       edge e from parent p to child v, leaves first
//
// b_v is shifted to a largest of zero before it is used; the score is the sum of the shifts. No back
// pointers are kept: going down, y_v = argmax_j M_e(y_p, j) + b_v(j) costs L per edge, against L² on the
// way up. Ties go to the smallest label.
#include "max_message.hpp"
#include "sum.hpp"
#include "tree.hpp"

namespace chordal {

CHORDAL_BOTH_ISAS(void max_message(const double* M, bool child_last, const double* b,
                                   std::size_t columns, double* m, std::size_t n);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

void max_message(const double* M, bool child_last, const double* b, std::size_t columns, double* m,
                 std::size_t n) {
    if (child_last) {
        for (std::size_t i = 0; i < n; ++i, M += columns) {
            Pack packs = broadcast(-kInfinity);
            std::size_t j = 0;
            for (; j + kLanes <= columns; j += kLanes) packs = maximum(packs, load(M + j) + load(b + j));
            double most = lane_max(packs);
            for (; j < columns; ++j) most = M[j] + b[j] > most ? M[j] + b[j] : most;
            m[i] = most;
        }
        return;
    }
    for (std::size_t i = 0; i < n; ++i) m[i] = -kInfinity;
    for (std::size_t j = 0; j < columns; ++j, M += n) {
        std::size_t i = 0;
        for (; i + kLanes <= n; i += kLanes)
            store(m + i, maximum(load(m + i), load(M + i) + broadcast(b[j])));
        for (; i < n; ++i) m[i] = M[i] + b[j] > m[i] ? M[i] + b[j] : m[i];
    }
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include "patience.hpp"
#include "tree_plan.hpp"

namespace chordal {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

class TreeMax {
public:
    explicit TreeMax(const TreeBatch& t) : t_(t) {}

    double up(std::size_t e) {
        const std::int64_t first = t_.variable_offsets[e], last = t_.variable_offsets[e + 1];
        base_ = t_.state_offsets[first];
        best_.assign(t_.unary + base_, t_.unary + t_.state_offsets[last]);
        CHORDAL_ISA::Sum score;
        for (auto k = t_.clique_offsets[e + 1]; k-- > t_.clique_offsets[e];) {
            const TreeEdge edge = t_.edge(k);
            const double top = shift(edge.child);
            if (top == kNone) return kNone;
            score.add(top);
            send(edge);
            patience_.spend(static_cast<std::size_t>(t_.labels(edge.parent) * t_.labels(edge.child)) + 64);
        }
        for (auto v = first; v < last; ++v) {
            if (t_.parent_edge[v] >= 0) continue;
            const double top = shift(v);
            if (top == kNone) return kNone;
            score.add(top);
        }
        return score.value();
    }

    void down(std::size_t e, std::int32_t* y) {
        for (auto v = t_.variable_offsets[e]; v < t_.variable_offsets[e + 1]; ++v)
            if (t_.parent_edge[v] < 0)
                y[v] = static_cast<std::int32_t>(std::max_element(b(v), b(v) + t_.labels(v)) - b(v));
        for (auto k = t_.clique_offsets[e]; k < t_.clique_offsets[e + 1]; ++k) {
            const TreeEdge edge = t_.edge(k);
            const std::int64_t rows = t_.labels(edge.parent), columns = t_.labels(edge.child);
            const double* M = t_.tables + t_.table_offsets[edge.table] +
                              y[edge.parent] * (edge.child_last ? columns : 1);
            const std::int64_t step = edge.child_last ? 1 : rows;
            std::int32_t best = 0;
            for (std::int64_t j = 1; j < columns; ++j)
                if (M[j * step] + b(edge.child)[j] > M[best * step] + b(edge.child)[best])
                    best = static_cast<std::int32_t>(j);
            y[edge.child] = best;
            patience_.spend(static_cast<std::size_t>(columns) + 64);
        }
    }

private:
    double* b(std::int64_t v) { return best_.data() + (t_.state_offsets[v] - base_); }
    const double* b(std::int64_t v) const { return best_.data() + (t_.state_offsets[v] - base_); }

    double shift(std::int64_t v) {
        const double top = *std::max_element(b(v), b(v) + t_.labels(v));
        if (top > kNone)
            for (std::int64_t j = 0; j < t_.labels(v); ++j) b(v)[j] -= top;
        return top;
    }

    void send(const TreeEdge& edge) {
        const std::int64_t rows = t_.labels(edge.parent), columns = t_.labels(edge.child);
        const double* M = t_.tables + t_.table_offsets[edge.table];
        const double* m = messages_.through(edge.table, M, edge.child_last, b(edge.child),
                                            static_cast<std::size_t>(columns), static_cast<std::size_t>(rows));
        double* to = b(edge.parent);
        for (std::int64_t i = 0; i < rows; ++i) to[i] += m[i];
    }

    const TreeBatch& t_;
    std::int64_t base_ = 0;
    std::vector<double> best_;
    BestMessages messages_;
    CHORDAL_ISA::Patience patience_{interrupted};
};

}  // namespace

static const Binding binding([](nb::module_& m) {
    m.def(
        "tree_best_labelling",
        [](const BoundScores& scores, const TreePlan& plan, Output<double> score,
           Output<std::int32_t> labels) {
            GilReleased release;
            const TreeBatch t = plan.on(scores);
            TreeMax tree(t);
            for (std::size_t e = 0; e < t.examples; ++e) {
                score.data()[e] = tree.up(e);
                if (score.data()[e] > kNone) tree.down(e, labels.data());
            }
        },
        nb::arg("scores"), nb::arg("plan"), nb::arg("score"), nb::arg("labels"));
});

}  // namespace chordal
#endif
