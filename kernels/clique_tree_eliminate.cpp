// Variable elimination along a clique tree: log Z or the best labelling, one table at a time.
//
//   ψ_C(r, s) = Σ_{v ∈ R} u_v + Σ_{c of C} table_c + Σ_{children} m_child
//   log Z:   m_C(s) = log Σ_r exp ψ_C(r, s)
//   best:    m_C(s) = max_r ψ_C(r, s),  a_C(s) the first r that attains it
//
// A table is needed until its message is there, a message until the parent has taken it, so that memory
// holds the largest table and the messages on their way. For the best labelling a_C is kept (four bytes
// per column) and read from the roots down.
//
// Reference: Dechter (1999), Bucket elimination: a unifying framework for reasoning.
#include <optional>

#include <nanobind/stl/optional.h>

#include "clique_tree.hpp"
#include "log_sum.hpp"
#include "sum.hpp"

namespace chordal {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

// By itself, without a call in it: the compiler then makes vectors of it.
void take_better(const double* row, std::int64_t columns, std::int32_t r, double* message,
                 std::int32_t* best) {
    for (std::int64_t s = 0; s < columns; ++s)
        if (row[s] > message[s]) {
            message[s] = row[s];
            best[s] = r;
        }
}

void maximise(const double* table, const Cluster& c, double* message, std::int32_t* best,
              CellPatience& patience) {
    std::copy_n(table, c.columns, message);
    std::fill_n(best, c.columns, 0);
    for (std::int64_t r = 1; r < c.rows; ++r) {
        take_better(table + r * c.columns, c.columns, static_cast<std::int32_t>(r), message, best);
        patience.spend(static_cast<std::size_t>(c.columns));
    }
}

class Eliminator {
public:
    Eliminator(const CliqueTree& t, const double* unary, const double* tables)
        : t_(t), unary_(unary), tables_(tables) {}

    // The sum of the roots' messages. reduce(i, cluster, table, message).
    template <class Reduce>
    double run(std::size_t example, Reduce reduce) {
        const std::int64_t begin = t_.cluster_offsets[example], end = t_.cluster_offsets[example + 1];
        CHORDAL_ISA::Sum sum;
        message_.assign(end - begin, {});
        std::int64_t most = 0;
        for (auto i = begin; i < end; ++i) most = std::max(most, Cluster(t_, i).cells());
        patience_.enlarge(table_, most);
        for (auto i = begin; i < end; ++i) {
            const Cluster c(t_, i);
            Sources(t_, i, c, patience_).fill(
                unary_, tables_, [&](auto k) { return message_[k - begin].data(); }, table_.data());
            for (auto k = t_.child_offsets[i]; k < t_.child_offsets[i + 1]; ++k)
                std::vector<double>().swap(message_[t_.children[k] - begin]);
            message_[i - begin].resize(c.columns);
            reduce(i, c, table_.data(), message_[i - begin].data());
            const double most = shift(message_[i - begin].data(), c.columns);
            if (most == kNone) return kNone;
            sum.add(most);
        }
        return sum.value();
    }

    double log_partition(std::size_t example) {
        return run(example, [](std::int64_t, const Cluster& c, double* table, double* message) {
            CHORDAL_DISPATCH(condition(table, c.rows, c.columns, message, interrupted));
        });
    }

    double best(std::size_t example, std::int32_t* y) {
        const std::int64_t begin = t_.cluster_offsets[example], end = t_.cluster_offsets[example + 1];
        best_.assign(end - begin, {});
        const double score = run(example, [&](std::int64_t i, const Cluster& c, double* table, double* message) {
            best_[i - begin].resize(c.columns);
            maximise(table, c, message, best_[i - begin].data(), patience_);
        });
        if (score > kNone)
            for (auto i = end; i-- > begin;) set_row(t_, i, best_[i - begin][column_of(t_, i, y)], y);
        return score;
    }

private:
    const CliqueTree& t_;
    const double* unary_;
    const double* tables_;
    std::vector<double> table_;
    std::vector<std::vector<double>> message_;
    std::vector<std::vector<std::int32_t>> best_;
    CellPatience patience_;
};

template <class Each>
void over_examples(const Clusters& tree, const Scores& scores, double* out, Each each) {
    const CliqueTree t = tree.on(scores);
    GilReleased release;
    Eliminator eliminator(t, scores.unary, scores.tables);
    for (std::size_t e = 0; e < t.examples; ++e) out[e] = each(eliminator, e);
}

}  // namespace

static const Binding binding([](nb::module_& m) {
    // Nothing happens to examples that are to be skipped.
    m.def(
        "clique_tree_log_partition",
        [](const BoundScores& scores, const PlannedTree& tree,
           std::optional<Input<std::uint8_t>> skip, Output<double> out) {
            over_examples(tree, scores, out.data(), [&](Eliminator& eliminator, std::size_t e) {
                const bool done = skip && skip->data()[e];
                return done ? out.data()[e] : eliminator.log_partition(e);
            });
        },
        nb::arg("scores"), nb::arg("tree"), nb::arg("skip").none(), nb::arg("out"));
    m.def(
        "clique_tree_best_labelling",
        [](const BoundScores& scores, const PlannedTree& tree, Output<double> score,
           Output<std::int32_t> labels) {
            over_examples(tree, scores, score.data(), [&](Eliminator& eliminator, std::size_t e) {
                return eliminator.best(e, labels.data());
            });
        },
        nb::arg("scores"), nb::arg("tree"), nb::arg("score"), nb::arg("labels"));
});

}  // namespace chordal
