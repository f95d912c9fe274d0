// Sums on a clique tree: log Z, marginals and their derivative, entropy, samples.
//
// Upwards, children first, every cluster C with separator S and residual R = C \ S gets
//
//   ψ_C(r, s) = Σ_{v ∈ R} u_v + Σ_{c of C} table_c + Σ_{children} m_child
//   m_C(s) = log Σ_r exp ψ_C(r, s)      P(r | s) = exp(ψ_C(r, s) − m_C(s))
//
// and log Z is the sum of the roots' m. What is left in the tables is a Bayesian network with the
// same distribution. Downwards, parents first,
//
//   P(r, s) = P(r | s) P(s),   P(s) summed out of the parent's table
//   H = Σ_C Σ_s P(s) H(R | s)
//   samples: r from P(r | s) at the labels already drawn
//
// The derivative in a direction D, whose scores fill dψ as those of the potentials fill ψ:
//
//   dm_C(s) = Σ_r P(r | s) dψ_C(r, s)
//   dP(r, s) = P(r | s) (dP(s) + P(s) (dψ_C(r, s) − dm_C(s))),   dP = 0 above the roots
//
// Where memory is short, tables are not kept: there is room for the largest, and on the way down each is
// made once more from the messages of its children. These are not needed any longer when P(s) takes
// their place.
//
// Messages are shifted to a largest of zero, so that rounding does not grow with the tree. No division by
// a marginal occurs: where a column has no allowed labelling, P(r | s) is zero and so is all below.
//
// Reference: Lauritzen and Spiegelhalter (1988), Local computations with probabilities on graphical
// structures and their application to expert systems.
#include <cmath>
#include <optional>

#include <nanobind/stl/optional.h>

#include "clique_tree.hpp"
#include "log_sum.hpp"
#include "sum.hpp"

namespace chordal {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

// Tables and messages of one example at a time.
class Sums {
public:
    Sums(const CliqueTree& t, const double* unary, const double* tables, bool keep)
        : t_(t), unary_(unary), tables_(tables), keep_(keep) {}

    // log Z of the example, −inf if it has no labelling. Leaves P(r | s) in the tables, if kept.
    double up(std::size_t example) {
        begin_ = t_.cluster_offsets[example];
        end_ = t_.cluster_offsets[example + 1];
        place();
        CHORDAL_ISA::Sum log_z;
        for (auto i = begin_; i < end_; ++i) {
            const Cluster c(t_, i);
            fill(i, c, message(i));
            const double most = shift(message(i), c.columns);
            if (most == kNone) return kNone;
            log_z.add(most);
        }
        return log_z.value();
    }

    // After up(): adds `weight` times all marginals to the parts, if there are any, and the entropy to
    // a sum.
    void down(double weight, double* unary, double* tables, double* entropy = nullptr) {
        for (auto i = end_; i-- > begin_;) {
            const Cluster c(t_, i);
            recall(i, c);
            if (t_.parent[i] < 0) *message(i) = 1.0;
            if (entropy) *entropy += entropy_of(c, table(i), message(i));
            multiply(c, message(i), table(i));
            hand_down(i, c, table(i), message_, weight, unary, tables);
        }
    }

    // After up(): n labellings of the example, each from a number in [0, 1) per cluster.
    void draw(std::size_t n, const double* uniform, std::size_t clusters, std::int32_t* labels) {
        for (auto i = end_; i-- > begin_;) {
            const Cluster c(t_, i);
            recall(i, c);
            for (std::size_t k = 0; k < n; ++k) {
                std::int32_t* y = labels + k * t_.variables;
                set_row(t_, i, drawn(c, table(i) + column_of(t_, i, y), uniform[k * clusters + i]), y);
            }
        }
    }

    // After up(): how P changes, added to the parts.
    void derivative(const double* d_unary, const double* d_tables, double weight, double* unary,
                    double* tables) {
        patience_.enlarge(d_table_, static_cast<std::int64_t>(table_.size()));  // all is written
        patience_.enlarge(d_message_, static_cast<std::int64_t>(message_.size()));
        std::fill(d_message_.begin(), d_message_.end(), 0.0);
        mean_.resize(message_.size());
        for (auto i = begin_; i < end_; ++i) {
            const Cluster c(t_, i);
            double* d = d_table_.data() + offset_[i - begin_];
            Sources(t_, i, c, patience_).fill(
                d_unary, d_tables, [&](auto k) { return mean_.data() + separator_[k - begin_]; }, d);
            subtract_means(c, table(i), d, mean_.data() + separator_[i - begin_]);
        }
        for (auto i = end_; i-- > begin_;) {
            const Cluster c(t_, i);
            double* d = d_table_.data() + offset_[i - begin_];
            const double* change = d_message_.data() + separator_[i - begin_];
            if (t_.parent[i] < 0) *message(i) = 1.0;
            by_rows(c, [&](std::int64_t at) {
                for (std::int64_t s = 0; s < c.columns; ++s) {
                    double& x = d[at + s];
                    x = table(i)[at + s] * (change[s] + message(i)[s] * x);
                }
            });
            multiply(c, message(i), table(i));
            hand_down(i, c, d, d_message_, weight, unary, tables);
            hand_down(i, c, table(i), message_, 0.0, nullptr, nullptr);
        }
    }

private:
    // P(r | s) from the messages of the children, and the cluster's own message.
    void fill(std::int64_t i, const Cluster& c, double* own) {
        Sources(t_, i, c, patience_).fill(
            unary_, tables_, [&](auto k) { return message(k); }, table(i));
        CHORDAL_DISPATCH(condition(table(i), c.rows, c.columns, own, interrupted));
    }

    // On the way down: the table as up() left it.
    void recall(std::int64_t i, const Cluster& c) {
        if (keep_) return;
        fill(i, c, again_.data());
    }

    void place() {
        offset_.assign(1, 0);
        separator_.assign(1, 0);
        columns_.clear();
        std::int64_t most = 0, longest = 0;
        for (auto i = begin_; i < end_; ++i) {
            const Cluster c(t_, i);
            offset_.push_back(keep_ ? offset_.back() + c.cells() : 0);
            most = std::max(most, c.cells());
            longest = std::max(longest, c.columns);
            separator_.push_back(separator_.back() + c.columns);
            columns_.push_back(c.columns);
        }
        const std::int64_t room = keep_ ? offset_.back() : most;
        patience_.enlarge(table_, room);
        if (!keep_) patience_.enlarge(again_, longest);
        patience_.enlarge(message_, separator_.back());
    }

    // The row at which a column's probabilities have reached a number in [0, 1).
    std::int64_t drawn(const Cluster& c, const double* p, double rest) {
        std::int64_t row = 0;
        for (std::int64_t r = 0; r < c.rows; ++r) {
            patience_.spend(8);
            if (p[r * c.columns] == 0.0) continue;
            row = r;  // rounding may leave `rest` above the last one
            rest -= p[r * c.columns];
            if (rest < 0.0) break;
        }
        return row;
    }

    // P(r, s) from P(r | s)
    void multiply(const Cluster& c, const double* separator, double* table) {
        by_rows(c, [&](std::int64_t at) {
            for (std::int64_t s = 0; s < c.columns; ++s) table[at + s] *= separator[s];
        });
    }

    double entropy_of(const Cluster& c, const double* table, const double* separator) {
        double sum = 0.0;
        by_rows(c, [&](std::int64_t at) {
            for (std::int64_t s = 0; s < c.columns; ++s) {
                const double p = table[at + s] * separator[s];
                if (p > 0.0 && table[at + s] < 1.0) sum -= p * std::log(table[at + s]);
            }
            patience_.spend(16 * static_cast<std::size_t>(c.columns));  // logarithms
        });
        return sum;
    }

    // Calls visit(first cell) for every row.
    template <class Visit>
    void by_rows(const Cluster& c, Visit visit) {
        for (std::int64_t r = 0, at = 0; r < c.rows; ++r, at += c.columns) {
            visit(at);
            patience_.spend(static_cast<std::size_t>(c.columns));
        }
    }

    // dψ less its mean in each column; the means, less a constant, are the message.
    void subtract_means(const Cluster& c, const double* p, double* d, double* mean) {
        std::fill_n(mean, c.columns, 0.0);
        by_rows(c, [&](std::int64_t at) {
            for (std::int64_t s = 0; s < c.columns; ++s) mean[s] += p[at + s] * d[at + s];
        });
        by_rows(c, [&](std::int64_t at) {
            for (std::int64_t s = 0; s < c.columns; ++s) d[at + s] -= mean[s];
        });
        double sum = 0.0;
        for (std::int64_t s = 0; s < c.columns; ++s) sum += mean[s];
        for (std::int64_t s = 0; s < c.columns; ++s) mean[s] -= sum / static_cast<double>(c.columns);
    }

    // Sums of a table to the children's separators, and with a weight to the parts.
    void hand_down(std::int64_t i, const Cluster& c, double* from, std::vector<double>& to, double weight,
                   double* unary, double* tables) {
        const auto target = [&](std::int64_t child) { return to.data() + separator_[child - begin_]; };
        for (auto k = t_.child_offsets[i]; k < t_.child_offsets[i + 1]; ++k)
            std::fill_n(target(t_.children[k]), columns_[t_.children[k] - begin_], 0.0);
        Sources(t_, i, c, patience_).project(from, weight, unary, tables, target);
    }

    double* table(std::int64_t i) { return table_.data() + offset_[i - begin_]; }
    double* message(std::int64_t i) { return message_.data() + separator_[i - begin_]; }

    const CliqueTree& t_;
    const double* unary_;
    const double* tables_;
    bool keep_;
    std::int64_t begin_ = 0, end_ = 0;
    std::vector<std::int64_t> offset_, separator_, columns_;
    std::vector<double> table_, message_, d_table_, d_message_, mean_, again_;
    CellPatience patience_;
};

// Runs an example after the other without the GIL.
template <class Each>
void over_examples(const Clusters& tree, const Scores& scores, bool keep, Each each) {
    const CliqueTree t = tree.on(scores);
    GilReleased release;
    Sums sums(t, scores.unary, scores.tables, keep);
    for (std::size_t e = 0; e < t.examples; ++e) each(sums, e);
}

using Skip = std::optional<Input<std::uint8_t>>;  // [examples]
double weight_of(const Weight& weight, std::size_t e) { return weight ? weight->data()[e] : 1.0; }

}  // namespace

static const Binding binding([](nb::module_& m) {
    // Adds to the parts; nothing happens to examples that are to be skipped.
    m.def(
        "clique_tree_marginals",
        [](const BoundScores& scores, const PlannedTree& tree, const BoundParts& parts, bool keep,
           Skip skip, Weight weight, Output<double> log_partition) {
            over_examples(tree, scores, keep, [&](Sums& sums, std::size_t e) {
                if (skip && skip->data()[e]) return;
                const double log_z = log_partition.data()[e] = sums.up(e);
                const double w = weight_of(weight, e);
                if (log_z > kNone && w != 0.0) sums.down(w, parts.unary, parts.tables);
            });
        },
        nb::arg("scores"), nb::arg("tree"), nb::arg("parts"), nb::arg("keep"),
        nb::arg("skip").none(), nb::kw_only(), nb::arg("weight").none(), nb::arg("log_partition"));
    m.def(
        "clique_tree_marginals_derivative",
        [](const BoundScores& scores, const PlannedTree& tree, const BoundParts& parts,
           const BoundScores& direction, Weight weight, Output<double> log_partition) {
            over_examples(tree, scores, true, [&](Sums& sums, std::size_t e) {
                if ((log_partition.data()[e] = sums.up(e)) == kNone) return;
                sums.derivative(direction.unary, direction.tables, weight_of(weight, e), parts.unary,
                                parts.tables);
            });
        },
        nb::arg("scores"), nb::arg("tree"), nb::arg("parts"), nb::kw_only(), nb::arg("direction"),
        nb::arg("weight").none(), nb::arg("log_partition"));
    // log Z too: an example without a labelling has −inf there.
    m.def(
        "clique_tree_entropy",
        [](const BoundScores& scores, const PlannedTree& tree, bool keep,
           Output<double> log_partition, Output<double> out) {
            over_examples(tree, scores, keep, [&](Sums& sums, std::size_t e) {
                out.data()[e] = 0.0;
                if ((log_partition.data()[e] = sums.up(e)) == kNone) return;
                sums.down(0.0, nullptr, nullptr, out.data() + e);
            });
        },
        nb::arg("scores"), nb::arg("tree"), nb::arg("keep"), nb::kw_only(),
        nb::arg("log_partition"), nb::arg("out"));
    // uniform [n, clusters], labels [n, variables]
    m.def(
        "clique_tree_sample",
        [](const BoundScores& scores, const PlannedTree& tree, bool keep, Input<double> uniform,
           Output<double> log_partition, Output<std::int32_t> labels) {
            const std::size_t n = scores.variables ? labels.size() / scores.variables : 0;
            over_examples(tree, scores, keep, [&](Sums& sums, std::size_t e) {
                if ((log_partition.data()[e] = sums.up(e)) == kNone) return;
                sums.draw(n, uniform.data(), tree.size(), labels.data());
            });
        },
        nb::arg("scores"), nb::arg("tree"), nb::arg("keep"), nb::kw_only(), nb::arg("uniform"),
        nb::arg("log_partition"), nb::arg("labels"));
});

}  // namespace chordal
