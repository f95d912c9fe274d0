// The k best labellings on a clique tree, best first, with their scores.
//
// After messages of maxima (m_C of clique_tree_eliminate.cpp), every cell has its loss
//
//   δ_C(r, s) = ψ_C(r, s) − m_C(s) ≤ 0      score(y) = max_y' score(y') + Σ_C δ_C(y_R, y_S)
//
// so that a labelling is a choice of r in each cluster, roots first, and loses nothing after its
// last choice that is not the best of its column. The second-best labelling takes the next-best r
// somewhere. In general, if the n-th labelling chose the a-th best r at cluster t, as its
// last choice that was not the best, then the labellings that agree with it before t and have not
// been listed are, by the first cluster where they differ from all that have: at t the (a+1)-th best
// r or a later one; at some cluster after t the second-best r or a later one. The best of each set is
// known without any search. They wait in a queue; k + the newest are kept.
//
// Each labelling costs a look at one column of every cluster. Equal scores go by the smaller row.
//
// Reference: Lawler (1972), A procedure for computing the K best solutions to discrete optimization
// problems; Nilsson (1998), An efficient algorithm for finding the M most probable configurations.
#include <algorithm>

#include "clique_tree.hpp"
#include "sum.hpp"

namespace chordal {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

class Ranking {
public:
    Ranking(const CliqueTree& t, const double* unary, const double* tables)
        : t_(t), unary_(unary), tables_(tables) {}

    // Fills δ; the best score, or −inf.
    double prepare(std::size_t example) {
        begin_ = t_.cluster_offsets[example];
        end_ = t_.cluster_offsets[example + 1];
        offset_.assign(1, 0);
        separator_.assign(1, 0);
        for (auto i = begin_; i < end_; ++i) {
            const Cluster c(t_, i);
            offset_.push_back(offset_.back() + c.cells());
            separator_.push_back(separator_.back() + c.columns);
        }
        patience_.enlarge(table_, offset_.back());
        patience_.enlarge(message_, separator_.back());
        CHORDAL_ISA::Sum sum;
        for (auto i = begin_; i < end_; ++i) {
            const Cluster c(t_, i);
            double* table = table_.data() + offset_[i - begin_];
            double* message = message_.data() + separator_[i - begin_];
            Sources(t_, i, c, patience_).fill(
                unary_, tables_, [&](auto k) { return message_.data() + separator_[k - begin_]; }, table);
            lose(c, table, message);
            const double most = shift(message, c.columns);
            if (most == kNone) return kNone;
            sum.add(most);
        }
        return sum.value();
    }

    // score [k] and the labels of all k, `variables` apart.
    void list(double best, std::size_t k, std::size_t variables, double* score, std::int32_t* labels) {
        std::fill_n(score, k, kNone);
        waiting_.clear();
        if (best > kNone && k) waiting_.push_back({best, best, 0, end_, 0, 0});
        for (std::size_t n = 0; n < k && !waiting_.empty(); ++n) {
            std::pop_heap(waiting_.begin(), waiting_.end());
            const Candidate found = waiting_.back();
            waiting_.pop_back();
            score[n] = found.score;
            std::int32_t* y = labels + n * variables;
            realise(found, labels + found.from * variables, y);
            if (n + 1 < k) branch(found, n, y, k - n - 1);
        }
    }

private:
    struct Candidate {
        double score, base;   // base: without the loss at its last choice
        std::size_t from;     // the labelling that it agrees with before that choice
        std::int64_t cluster; // where the choice is, end_ for the best of all
        std::int64_t row;     // which
        std::size_t number;   // ties go to the oldest
        bool operator<(const Candidate& other) const {
            return score < other.score || (score == other.score && number > other.number);
        }
    };

    void lose(const Cluster& c, double* table, double* message) {
        std::copy_n(table, c.columns, message);
        for (std::int64_t r = 1; r < c.rows; ++r) {
            for (std::int64_t s = 0; s < c.columns; ++s)
                message[s] = std::max(message[s], table[r * c.columns + s]);
            patience_.spend(static_cast<std::size_t>(c.columns));
        }
        for (std::int64_t r = 0; r < c.rows; ++r) {
            for (std::int64_t s = 0; s < c.columns; ++s)
                if (message[s] > kNone) table[r * c.columns + s] -= message[s];
            patience_.spend(static_cast<std::size_t>(c.columns));
        }
    }

    struct Column {
        const double* loss;
        std::int64_t step, rows;
        double operator[](std::int64_t r) const { return loss[r * step]; }
    };
    Column column(std::int64_t i, const std::int32_t* y) const {
        const std::int64_t cells = offset_[i + 1 - begin_] - offset_[i - begin_];
        const std::int64_t columns = separator_[i + 1 - begin_] - separator_[i - begin_];
        return {table_.data() + offset_[i - begin_] + column_of(t_, i, y), columns, cells / columns};
    }
    std::int64_t best_of(const Column& c) {
        patience_.cells(0);
        std::int64_t best = 0;
        for (std::int64_t r = 1; r < c.rows; ++r) {
            if (c[r] > c[best]) best = r;
            patience_.spend(4);
        }
        return best;
    }
    // The next after a row, by loss and then by number; −1 if nothing allowed is left.
    std::int64_t next_of(const Column& c, std::int64_t row) {
        std::int64_t best = -1;
        for (std::int64_t r = 0; r < c.rows; ++r) {
            patience_.spend(4);
            const bool later = c[r] < c[row] || (c[r] == c[row] && r > row);
            if (later && c[r] > kNone && (best < 0 || c[r] > c[best])) best = r;
        }
        return best;
    }

    void realise(const Candidate& found, const std::int32_t* from, std::int32_t* y) {
        for (auto i = end_; i-- > begin_;) {
            if (i > found.cluster) {
                for (auto k = t_.member_offsets[i]; k < t_.residual_end(i); ++k)
                    y[t_.members[k]] = from[t_.members[k]];
            } else {
                set_row(t_, i, i == found.cluster ? found.row : best_of(column(i, y)), y);
            }
        }
    }

    void branch(const Candidate& found, std::size_t n, const std::int32_t* y, std::size_t needed) {
        for (auto i = std::min(found.cluster, end_ - 1); i >= begin_; --i) {
            const Column c = column(i, y);
            const bool again = i == found.cluster;
            const std::int64_t row = next_of(c, again ? found.row : best_of(c));
            if (row < 0) continue;
            const double base = again ? found.base : found.score;
            push({base + c[row], base, again ? found.from : n, i, row, ++number_}, needed);
        }
    }

    void push(const Candidate& candidate, std::size_t needed) {
        waiting_.push_back(candidate);
        std::push_heap(waiting_.begin(), waiting_.end());
        if (waiting_.size() < 2 * needed + 1024) return;
        const auto better = [](const Candidate& a, const Candidate& b) { return b < a; };
        std::nth_element(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(needed),
                         waiting_.end(), better);
        waiting_.resize(needed);
        std::make_heap(waiting_.begin(), waiting_.end());
    }

    const CliqueTree& t_;
    const double* unary_;
    const double* tables_;
    std::int64_t begin_ = 0, end_ = 0;
    std::size_t number_ = 0;
    std::vector<std::int64_t> offset_, separator_;
    std::vector<double> table_, message_;
    std::vector<Candidate> waiting_;
    CellPatience patience_;
};

}  // namespace

static const Binding binding([](nb::module_& m) {
    // score [examples, k], labels [k, variables]
    m.def(
        "clique_tree_k_best",
        [](const BoundScores& scores, const PlannedTree& tree, std::size_t k, Output<double> score,
           Output<std::int32_t> labels) {
            GilReleased release;
            const CliqueTree t = tree.on(scores);
            Ranking ranking(t, scores.unary, scores.tables);
            for (std::size_t e = 0; e < t.examples; ++e)
                ranking.list(ranking.prepare(e), k, t.variables, score.data() + e * k, labels.data());
        },
        nb::arg("scores"), nb::arg("tree"), nb::arg("k"), nb::arg("score"), nb::arg("labels"));
});

}  // namespace chordal
