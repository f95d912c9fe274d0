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
    Sums(const CliqueTree& t, const double* unary, const double* tables)
        : t_(t), unary_(unary), tables_(tables) {}

    // log Z of the example, −inf if it has no labelling. Leaves P(r | s) in the tables.
    std::optional<double> up(std::size_t example) {
        begin_ = t_.cluster_offsets[example];
        end_ = t_.cluster_offsets[example + 1];
        place();
        CHORDAL_ISA::Sum log_z;
        for (auto i = begin_; i < end_; ++i) {
            const Cluster c(t_, i);
            Sources(t_, i, c).fill(unary_, tables_, [&](auto k) { return message(k); }, table(i));
            CHORDAL_DISPATCH(condition(table(i), c.rows, c.columns, message(i)));
            const double most = shift(message(i), c.columns);
            if (most == kNone) return kNone;
            log_z.add(most);
            if (patience_.lost(c.cells())) return {};
        }
        return log_z.value();
    }

    // After up(): adds `weight` times all marginals to the parts, if there are any, and the entropy to
    // a sum. False after Ctrl-C.
    bool down(double weight, double* unary, double* tables, double* entropy = nullptr) {
        for (auto i = end_; i-- > begin_;) {
            const Cluster c(t_, i);
            if (t_.parent[i] < 0) *message(i) = 1.0;
            if (entropy) *entropy += entropy_of(c, table(i), message(i));
            multiply(c, message(i), table(i));
            hand_down(i, c, table(i), message_, weight, unary, tables);
            if (patience_.lost(c.cells())) return false;
        }
        return true;
    }

    // Labels of the example from one number in [0, 1) per cluster.
    void draw(const double* uniform, std::int32_t* y) const {
        for (auto i = end_; i-- > begin_;) {
            const std::int64_t column = column_of(t_, i, y);
            const std::int64_t columns = columns_[i - begin_];
            const std::int64_t rows = (offset_[i + 1 - begin_] - offset_[i - begin_]) / columns;
            const double* p = table(i) + column;
            double rest = uniform[i];
            std::int64_t row = 0;
            for (std::int64_t r = 0; r < rows; ++r) {
                if (p[r * columns] == 0.0) continue;
                row = r;  // rounding may leave `rest` above the last one
                rest -= p[r * columns];
                if (rest < 0.0) break;
            }
            set_row(t_, i, row, y);
        }
    }

    // After up(): how P changes, added to the parts.
    bool derivative(const double* d_unary, const double* d_tables, double weight, double* unary,
                    double* tables) {
        d_table_.assign(table_.size(), 0.0);
        d_message_.assign(message_.size(), 0.0);
        mean_.resize(message_.size());
        for (auto i = begin_; i < end_; ++i) {
            const Cluster c(t_, i);
            double* d = d_table_.data() + offset_[i - begin_];
            Sources(t_, i, c).fill(
                d_unary, d_tables, [&](auto k) { return mean_.data() + separator_[k - begin_]; }, d);
            subtract_means(c, table(i), d, mean_.data() + separator_[i - begin_]);
            if (patience_.lost(c.cells())) return false;
        }
        for (auto i = end_; i-- > begin_;) {
            const Cluster c(t_, i);
            double* d = d_table_.data() + offset_[i - begin_];
            const double* change = d_message_.data() + separator_[i - begin_];
            if (t_.parent[i] < 0) *message(i) = 1.0;
            for (std::int64_t r = 0; r < c.rows; ++r)
                for (std::int64_t s = 0; s < c.columns; ++s) {
                    double& x = d[r * c.columns + s];
                    x = table(i)[r * c.columns + s] * (change[s] + message(i)[s] * x);
                }
            multiply(c, message(i), table(i));
            hand_down(i, c, d, d_message_, weight, unary, tables);
            hand_down(i, c, table(i), message_, 0.0, nullptr, nullptr);
            if (patience_.lost(c.cells())) return false;
        }
        return true;
    }

private:
    void place() {
        offset_.assign(1, 0);
        separator_.assign(1, 0);
        columns_.clear();
        for (auto i = begin_; i < end_; ++i) {
            const Cluster c(t_, i);
            offset_.push_back(offset_.back() + c.cells());
            separator_.push_back(separator_.back() + c.columns);
            columns_.push_back(c.columns);
        }
        if (static_cast<std::int64_t>(table_.size()) < offset_.back()) table_.resize(offset_.back());
        if (static_cast<std::int64_t>(message_.size()) < separator_.back())
            message_.resize(separator_.back());
    }

    // P(r, s) from P(r | s)
    static void multiply(const Cluster& c, const double* separator, double* table) {
        for (std::int64_t r = 0; r < c.rows; ++r, table += c.columns)
            for (std::int64_t s = 0; s < c.columns; ++s) table[s] *= separator[s];
    }

    static double entropy_of(const Cluster& c, const double* table, const double* separator) {
        double sum = 0.0;
        for (std::int64_t r = 0; r < c.rows; ++r, table += c.columns)
            for (std::int64_t s = 0; s < c.columns; ++s) {
                const double p = table[s] * separator[s];
                if (p > 0.0 && table[s] < 1.0) sum -= p * std::log(table[s]);
            }
        return sum;
    }

    // dψ less its mean in each column; the means, less a constant, are the message.
    static void subtract_means(const Cluster& c, const double* p, double* d, double* mean) {
        std::fill_n(mean, c.columns, 0.0);
        for (std::int64_t r = 0; r < c.rows; ++r)
            for (std::int64_t s = 0; s < c.columns; ++s)
                mean[s] += p[r * c.columns + s] * d[r * c.columns + s];
        for (std::int64_t r = 0; r < c.rows; ++r)
            for (std::int64_t s = 0; s < c.columns; ++s) d[r * c.columns + s] -= mean[s];
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
        Sources(t_, i, c).project(from, weight, unary, tables, target);
    }

    const double* table(std::int64_t i) const { return table_.data() + offset_[i - begin_]; }
    double* table(std::int64_t i) { return table_.data() + offset_[i - begin_]; }
    double* message(std::int64_t i) { return message_.data() + separator_[i - begin_]; }

    const CliqueTree& t_;
    const double* unary_;
    const double* tables_;
    std::int64_t begin_ = 0, end_ = 0;
    std::vector<std::int64_t> offset_, separator_, columns_;
    std::vector<double> table_, message_, d_table_, d_message_, mean_;
    CellPatience patience_;
};

// Runs an example after the other without the GIL; `each` returns false after Ctrl-C.
template <class Each>
void over_examples(const CliqueTree& t, const double* unary, const double* tables, Each each) {
    bool going = true;
    {
        nb::gil_scoped_release release;
        Sums sums(t, unary, tables);
        for (std::size_t e = 0; e < t.examples && going; ++e) going = each(sums, e);
    }
    if (!going) throw nb::python_error();
}

using Weight = std::optional<Input<double>>;
using Skip = std::optional<Input<std::uint8_t>>;  // [examples]
double weight_of(const Weight& weight, std::size_t e) { return weight ? weight->data()[e] : 1.0; }

}  // namespace

static const Binding binding([](nb::module_& m) {
    // Adds to the parts; nothing happens to examples that are to be skipped.
    m.def(
        "clique_tree_marginals",
        [](CHORDAL_CLIQUE_TREE_ARGUMENTS, Skip skip, Weight weight, Output<double> log_partition,
           Output<double> part_unary, Output<double> part_tables) {
            over_examples(CHORDAL_CLIQUE_TREE, unary.data(), tables.data(), [&](Sums& sums, std::size_t e) {
                if (skip && skip->data()[e]) return true;
                const auto log_z = sums.up(e);
                if (!log_z) return false;
                log_partition.data()[e] = *log_z;
                const double w = weight_of(weight, e);
                if (*log_z == kNone || w == 0.0) return true;
                return sums.down(w, part_unary.data(), part_tables.data());
            });
        },
        CHORDAL_CLIQUE_TREE_NAMES, nb::arg("skip").none(), nb::arg("weight").none(),
        nb::arg("log_partition"), nb::arg("part_unary"), nb::arg("part_tables"));
    m.def(
        "clique_tree_marginals_derivative",
        [](CHORDAL_CLIQUE_TREE_ARGUMENTS, Input<double> d_unary, Input<double> d_tables, Weight weight,
           Output<double> log_partition, Output<double> part_unary, Output<double> part_tables) {
            over_examples(CHORDAL_CLIQUE_TREE, unary.data(), tables.data(), [&](Sums& sums, std::size_t e) {
                const auto log_z = sums.up(e);
                if (!log_z) return false;
                log_partition.data()[e] = *log_z;
                if (*log_z == kNone) return true;
                return sums.derivative(d_unary.data(), d_tables.data(), weight_of(weight, e),
                                       part_unary.data(), part_tables.data());
            });
        },
        CHORDAL_CLIQUE_TREE_NAMES, nb::arg("d_unary"), nb::arg("d_tables"), nb::arg("weight").none(),
        nb::arg("log_partition"), nb::arg("part_unary"), nb::arg("part_tables"));
    // log Z too: an example without a labelling has −inf there.
    m.def("clique_tree_entropy", [](CHORDAL_CLIQUE_TREE_ARGUMENTS, Output<double> log_partition,
                                    Output<double> out) {
        over_examples(CHORDAL_CLIQUE_TREE, unary.data(), tables.data(), [&](Sums& sums, std::size_t e) {
            const auto log_z = sums.up(e);
            if (!log_z) return false;
            log_partition.data()[e] = *log_z;
            out.data()[e] = 0.0;
            return *log_z == kNone || sums.down(0.0, nullptr, nullptr, out.data() + e);
        });
    });
    // uniform [n, clusters], labels [n, variables]
    m.def("clique_tree_sample", [](CHORDAL_CLIQUE_TREE_ARGUMENTS, Input<double> uniform,
                                   Output<double> log_partition, Output<std::int32_t> labels) {
        const std::size_t clusters = residual.size(), variables = state_offsets.size() - 1;
        const std::size_t n = variables ? labels.size() / variables : 0;
        over_examples(CHORDAL_CLIQUE_TREE, unary.data(), tables.data(), [&](Sums& sums, std::size_t e) {
            const auto log_z = sums.up(e);
            if (!log_z) return false;
            log_partition.data()[e] = *log_z;
            if (*log_z == kNone) return true;
            for (std::size_t k = 0; k < n; ++k)
                sums.draw(uniform.data() + k * clusters, labels.data() + k * variables);
            return true;
        });
    });
});

}  // namespace chordal
