// A clique tree as kernels see it: clusters of variables, children first, and walks over tables.
//
// The table of cluster C has an axis for each variable, in C order: first the residual R, then the
// separator S, so that a cell is (r, s) and the cells of one s lie |S| apart. Sources (a clique's
// table, a child's message, a row of label scores) cover some of C's axes; `Axes` says how far each
// step along C moves in the source, zero where it has no such axis. Variables with one label are not
// axes of anything.
//
// A source that only has axes among C's first k is added to a table of these k, which is then repeated
// along the next axis, and so on: n sources that end at different axes cost little more than one.
// Sums out of a table go the same way back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "frame_binding.hpp"
#include "patience.hpp"

namespace chordal {

struct CliqueTree : Frame {
    const std::int64_t* cluster_offsets;  // [examples + 1] into clusters
    const std::int64_t* member_offsets;   // [clusters + 1] into members
    const std::int64_t* members;          // variables of each cluster, residual first
    const std::int64_t* residual;         // [clusters] how many of them
    const std::int64_t* parent;           // [clusters], −1 for a root
    const std::int64_t* child_offsets;    // [clusters + 1] into children
    const std::int64_t* children;
    const std::int64_t* factor_offsets;   // [clusters + 1] into factors
    const std::int64_t* factors;          // cliques of each cluster

    std::int64_t residual_end(std::int64_t i) const { return member_offsets[i] + residual[i]; }
};

// The clusters of a structure, made once.
struct Clusters {
    Indices cluster_offsets{0}, member_offsets{0}, members, residual, parent, child_offsets, children,
        factor_offsets{0}, factors;

    std::size_t size() const { return residual.size(); }
    CliqueTree on(const Frame& frame) const {
        return {frame,
                cluster_offsets.data(),
                member_offsets.data(),
                members.data(),
                residual.data(),
                parent.data(),
                child_offsets.data(),
                children.data(),
                factor_offsets.data(),
                factors.data()};
    }
    // Fills the children of each cluster, in order, and gives spare memory back: trees are kept.
    void finish() {
        child_offsets.assign(parent.size() + 1, 0);
        for (const auto p : parent)
            if (p >= 0) ++child_offsets[p + 1];
        for (std::size_t i = 0; i < parent.size(); ++i) child_offsets[i + 1] += child_offsets[i];
        children.resize(static_cast<std::size_t>(child_offsets.back()));
        Indices next(child_offsets.begin(), child_offsets.end() - 1);
        for (std::size_t i = 0; i < parent.size(); ++i)
            if (parent[i] >= 0) children[next[parent[i]]++] = static_cast<std::int64_t>(i);
        for (Indices* made : {&cluster_offsets, &member_offsets, &members, &residual, &parent,
                              &factor_offsets, &factors})
            made->shrink_to_fit();
    }
};

// The clusters of a structure, and what they take. In Python: CliqueTree.
struct PlannedTree : Clusters {
    // Per example: all tables and messages; the most alive at once if both are given up early; all
    // messages; the largest table and the largest message.
    std::vector<double> cells, streamed, messages, largest;
    Indices stuck;  // the variables of the table that was too large: then no array describes a tree
};

// Counts cells: a single table may have hundreds of millions of them.
class CellPatience : public CHORDAL_ISA::Patience {
public:
    CellPatience() : Patience(interrupted) {}
    void cells(std::int64_t n) { spend(static_cast<std::size_t>(n) + 16); }
    void enlarge(std::vector<double>& room, std::int64_t n) {
        chordal::enlarge(room, static_cast<std::size_t>(n), *this);
    }

    static constexpr std::int64_t kAtOnce = std::int64_t{1} << 16;
};

constexpr int kMostAxes = 64;  // of two labels or more: a table of 2^64 cells fits nowhere

// One cluster's axes.
struct Cluster {
    int axes = 0;
    std::int64_t variable[kMostAxes], size[kMostAxes];
    std::int64_t rows = 1, columns = 1;  // |R|, |S|

    Cluster(const CliqueTree& t, std::int64_t i) {
        for (auto k = t.member_offsets[i]; k < t.member_offsets[i + 1]; ++k) {
            const std::int64_t v = t.members[k], n = t.labels(v);
            (k < t.residual_end(i) ? rows : columns) *= n;
            if (n == 1) continue;
            variable[axes] = v;
            size[axes++] = n;
        }
    }
    std::int64_t cells() const { return rows * columns; }
};

// How a walk over a cluster's cells in order moves in a source; neighbouring axes that move
// alike are one.
class Axes {
public:
    // Over the first `axes` of a cluster; the source's variables from first to last, in C order.
    Axes(const CliqueTree& t, const Cluster& c, int axes, const std::int64_t* first,
         const std::int64_t* last) {
        std::int64_t step[kMostAxes];
        std::fill_n(step, axes, 0);
        std::int64_t stride = 1;
        for (auto v = last; v-- != first;) {
            const std::int64_t n = t.labels(*v);
            if (n == 1) continue;
            step[std::find(c.variable, c.variable + c.axes, *v) - c.variable] = stride;
            stride *= n;
        }
        for (int k = 0; k < axes; ++k) {
            if (count_ && step_[count_ - 1] == step[k] * c.size[k]) {
                size_[count_ - 1] *= c.size[k];
                step_[count_ - 1] = step[k];
            } else {
                size_[count_] = c.size[k];
                step_[count_++] = step[k];
            }
        }
        while (count_ < 2) {  // an axis of one in front
            size_[count_] = count_ ? size_[0] : 1;
            step_[count_] = count_ ? step_[0] : 0;
            size_[0] = 1;
            step_[0] = 0;
            ++count_;
        }
    }

    // Calls row(cell, place, n, step) for every run of n cells; the place moves by step.
    template <class Row>
    void walk(CellPatience& patience, Row row) const {
        const int outer = count_ - 2;
        const std::int64_t n = size_[count_ - 1], step = step_[count_ - 1];
        const std::int64_t m = size_[count_ - 2], jump = step_[count_ - 2];
        std::int64_t digit[kMostAxes], cell = 0, place = 0;
        std::fill_n(digit, outer, 0);
        while (true) {
            for (std::int64_t j = 0; j < m; ++j, cell += n) row(cell, place + j * jump, n, step);
            patience.spend(static_cast<std::size_t>(m * n));
            int k = outer - 1;
            for (; k >= 0; --k) {
                place += step_[k];
                if (++digit[k] < size_[k]) break;
                place -= step_[k] * size_[k];
                digit[k] = 0;
            }
            if (k < 0) return;
        }
    }

    // table(cell) += source(place)
    void add(const double* source, double* table, CellPatience& patience) const {
        walk(patience, [&](std::int64_t cell, std::int64_t place, std::int64_t n, std::int64_t step) {
            double* to = table + cell;
            const double* from = source + place;
            if (step == 1) {
                for (std::int64_t j = 0; j < n; ++j) to[j] += from[j];
            } else if (step == 0) {
                const double x = *from;
                for (std::int64_t j = 0; j < n; ++j) to[j] += x;
            } else {
                for (std::int64_t j = 0; j < n; ++j) to[j] += from[j * step];
            }
        });
    }

    // target(place) += scale * table(cell)
    void project(const double* table, double scale, double* target, CellPatience& patience) const {
        walk(patience, [&](std::int64_t cell, std::int64_t place, std::int64_t n, std::int64_t step) {
            const double* from = table + cell;
            double* to = target + place;
            if (step == 1) {
                for (std::int64_t j = 0; j < n; ++j) to[j] += scale * from[j];
            } else if (step == 0) {
                double a = 0.0, b = 0.0;
                std::int64_t j = 0;
                for (; j + 1 < n; j += 2) a += from[j], b += from[j + 1];
                if (j < n) a += from[j];
                *to += scale * (a + b);
            } else {
                for (std::int64_t j = 0; j < n; ++j) to[j * step] += scale * from[j];
            }
        });
    }

private:
    int count_ = 0;
    std::int64_t size_[kMostAxes + 2], step_[kMostAxes + 2];
};

// What a cluster's table is made of: the label scores of its residual, the tables of its cliques,
// and its children's messages.
class Sources {
public:
    Sources(const CliqueTree& t, std::int64_t i, const Cluster& c, CellPatience& patience)
        : t_(t), c_(c), list_(memory()), patience_(patience) {
        list_.clear();
        for (auto k = t.member_offsets[i]; k < t.residual_end(i); ++k)
            add(Kind::labels, t.members[k], t.members + k, t.members + k + 1);
        for (auto f = t.factor_offsets[i]; f < t.factor_offsets[i + 1]; ++f)
            add(Kind::clique, t.factors[f], t.scopes + t.scope_offsets[t.factors[f]],
                t.scopes + t.scope_offsets[t.factors[f] + 1]);
        for (auto k = t.child_offsets[i]; k < t.child_offsets[i + 1]; ++k)
            add(Kind::child, t.children[k], t.members + t.residual_end(t.children[k]),
                t.members + t.member_offsets[t.children[k] + 1]);
        std::stable_sort(list_.begin(), list_.end(),
                         [](const Source& a, const Source& b) { return a.axes < b.axes; });
    }

    // ψ_C, the sum of all; message(child) is where a child's lies.
    template <class Message>
    void fill(const double* unary, const double* tables, Message message, double* table) const {
        std::int64_t cells = 1;
        auto source = list_.begin();
        table[0] = 0.0;
        for (int axes = 0; axes <= c_.axes; ++axes) {
            if (axes) cells = repeat(table, cells, c_.size[axes - 1]);
            for (; source != list_.end() && source->axes == axes; ++source)
                along(*source).add(place(*source, unary, tables, message), table, patience_);
        }
    }

    // Adds `scale` times the sums of a table to labels and cliques, and the sums themselves to the
    // messages, which are zero before; without `unary`, to the messages alone. The table is lost.
    template <class Message>
    void project(double* table, double scale, double* unary, double* tables, Message message) const {
        std::int64_t cells = c_.cells();
        auto source = list_.end();
        for (int axes = c_.axes; axes >= 0; --axes) {
            for (; source != list_.begin() && (source - 1)->axes == axes; --source) {
                const Source& it = *(source - 1);
                if (!unary && it.kind != Kind::child) continue;
                const double by = it.kind == Kind::child ? 1.0 : scale;
                along(it).project(table, by, place(it, unary, tables, message), patience_);
            }
            if (axes) cells = contract(table, cells, c_.size[axes - 1]);
        }
    }

private:
    enum class Kind { labels, clique, child };
    struct Source {
        int axes;  // the first so many of the cluster have all of its own
        Kind kind;
        std::int64_t id;
        const std::int64_t *first, *last;
    };

    static std::vector<Source>& memory() {
        thread_local std::vector<Source> kept;
        return kept;
    }

    void add(Kind kind, std::int64_t id, const std::int64_t* first, const std::int64_t* last) {
        int axes = 0;
        for (auto v = first; v != last; ++v)
            if (t_.labels(*v) > 1)
                axes = std::max(axes, 1 + static_cast<int>(std::find(c_.variable, c_.variable + c_.axes, *v) -
                                                           c_.variable));
        list_.push_back({axes, kind, id, first, last});
    }

    Axes along(const Source& it) const { return Axes(t_, c_, it.axes, it.first, it.last); }

    template <class Number, class Message>
    Number* place(const Source& it, Number* unary, Number* tables, Message message) const {
        if (it.kind == Kind::labels) return unary + t_.state_offsets[it.id];
        if (it.kind == Kind::clique) return tables + t_.table(it.id);
        return message(it.id);
    }

    std::int64_t repeat(double* table, std::int64_t cells, std::int64_t n) const {
        for (auto end = cells; end > 0;) {
            const std::int64_t begin = std::max<std::int64_t>(0, end - 1 - CellPatience::kAtOnce / n);
            for (auto k = end; k-- > begin;) {
                const double x = table[k];
                std::fill_n(table + k * n, n, x);
            }
            patience_.cells((end - begin) * n);
            end = begin;
        }
        return cells * n;
    }
    std::int64_t contract(double* table, std::int64_t cells, std::int64_t n) const {
        for (std::int64_t begin = 0; begin < cells / n;) {
            const std::int64_t end = std::min(cells / n, begin + 1 + CellPatience::kAtOnce / n);
            for (auto k = begin; k < end; ++k) {
                double sum = 0.0;
                for (std::int64_t l = 0; l < n; ++l) sum += table[k * n + l];
                table[k] = sum;
            }
            patience_.cells((end - begin) * n);
            begin = end;
        }
        return cells / n;
    }

    const CliqueTree& t_;
    const Cluster& c_;
    std::vector<Source>& list_;
    CellPatience& patience_;
};

// The column of the separator's labels.
inline std::int64_t column_of(const CliqueTree& t, std::int64_t i, const std::int32_t* y) {
    std::int64_t column = 0;
    for (auto k = t.residual_end(i); k < t.member_offsets[i + 1]; ++k)
        column = column * t.labels(t.members[k]) + y[t.members[k]];
    return column;
}

// Labels of the residual from their row.
inline void set_row(const CliqueTree& t, std::int64_t i, std::int64_t row, std::int32_t* y) {
    for (auto k = t.residual_end(i); k-- > t.member_offsets[i];) {
        const std::int64_t v = t.members[k], n = t.labels(v);
        y[v] = static_cast<std::int32_t>(row % n);
        row /= n;
    }
}

// Subtracts the largest message, which is returned: messages stay near zero however large the tree.
inline double shift(double* message, std::int64_t n) {
    const double most = *std::max_element(message, message + n);
    if (most > -std::numeric_limits<double>::infinity())
        for (std::int64_t s = 0; s < n; ++s) message[s] -= most;
    return most;
}

}  // namespace chordal
